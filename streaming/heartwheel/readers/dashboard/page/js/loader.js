// Repeated requests of a page: the newest answer is shown, or an error in its place.

import { isAborted } from "./api.js";
import { put } from "./dom.js";
import { failed } from "./states.js";

/**
 * Make a function that sends the request and shows the answer. Answers to all but the newest request are dropped.
 *
 * @template Answer
 * @param {object} wanted
 * @param {() => Promise<Answer>} wanted.ask
 * @param {(answer: Answer) => unknown} wanted.show
 * @param {HTMLElement} wanted.place where the words of an error are put
 */
export function loader({ ask, show, place }) {
  let asked = 0;
  return async () => {
    const number = ++asked;
    try {
      const answer = await ask();
      if (number === asked) show(answer);
    } catch (error) {
      if (!isAborted(error) && number === asked) put(place, failed(error));
    }
  };
}
