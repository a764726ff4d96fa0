// The source of the page's data: the engine, or brokers' logs. The server writes it into the page.

/** Whether brokers' logs are shown, without an engine. */
export const fromLog = globalThis.document?.documentElement.dataset.source === "log";
