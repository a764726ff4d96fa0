// Work that follows a stream: at a limited rate, and always once more after the last call.

/**
 * Wrap a function so that it runs at once, then at most every `pauseMs`; it ends with the signal.
 *
 * @param {() => unknown} run
 * @param {number} pauseMs
 * @param {AbortSignal} [signal]
 */
export function throttled(run, pauseMs, signal) {
  let timer = 0;
  let asked = false;
  const work = () => {
    asked = false;
    run();
    timer = setTimeout(rest, pauseMs);
  };
  const rest = () => {
    timer = 0;
    if (asked) work();
  };
  signal?.addEventListener("abort", () => clearTimeout(timer));
  return () => {
    asked = true;
    if (!timer && !signal?.aborted) work();
  };
}

/**
 * Wrap a function so that it runs only when it has not been called for a while.
 *
 * @param {() => unknown} run
 * @param {number} pauseMs
 * @param {AbortSignal} [signal]
 */
export function settled(run, pauseMs, signal) {
  let timer = 0;
  signal?.addEventListener("abort", () => clearTimeout(timer));
  return () => {
    clearTimeout(timer);
    timer = setTimeout(run, pauseMs);
  };
}

/**
 * Run at every frame the browser draws, at most every `pauseMs`, until the signal ends.
 *
 * @param {() => unknown} run
 * @param {number} pauseMs
 * @param {AbortSignal} signal
 */
export function animated(run, pauseMs, signal) {
  let last = 0;
  const step = (/** @type {number} */ at) => {
    if (signal.aborted) return;
    if (at - last >= pauseMs) {
      last = at;
      run();
    }
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}
