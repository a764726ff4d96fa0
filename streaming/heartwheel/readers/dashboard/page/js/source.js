// The source of the page's data: the engine, or brokers' logs. The server writes it into the page.

const { dataset } = globalThis.document?.documentElement ?? { dataset: {} };

/** Whether brokers' logs are shown, without an engine. */
export const fromLog = dataset.source === "log";

/** Whether these logs are followed: then their end is now. */
export const follows = dataset.follows !== undefined;

/** The moment at which a log shows how things stand. */
export const AT_END = follows ? "now" : "at the end of the log";
