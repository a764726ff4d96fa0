// Where the page's data come from: the engine, or brokers' logs. The server writes it into the page.

/** Whether brokers' logs are shown, with no engine behind them. */
export const fromLog = globalThis.document?.documentElement.dataset.source === "log";
