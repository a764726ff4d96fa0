// An address that names no page.

import { h } from "../dom.js";
import { empty, head } from "../states.js";

/** @import { Page } from "../types.d.ts" */

/** @type {Page} */
export const missingPage = {
  tab: null,
  title: () => "No such page",
  mount: (main) =>
    main.append(head("No such page"), empty("Nothing is at this address.", h("a", { href: "/" }, "Go to page Now"))),
};
