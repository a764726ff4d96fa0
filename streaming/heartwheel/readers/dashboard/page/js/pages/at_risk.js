// Page At risk: the members nearest to expiry. Each bar is the rest of a session; a heartbeat fills it again.

import { get } from "../api.js";
import { h, put } from "../dom.js";
import { loader } from "../loader.js";
import { head } from "../states.js";
import { animated } from "../throttle.js";
import { riskList } from "./risk_list.js";

/** @import { AtRiskList } from "answers" */
/** @import { Page } from "../types.d.ts" */

const ABOUT =
  "The members nearest to their deadline. To be here is normal: somebody is always next. A heartbeat fills the bar " +
  "again; when it runs empty, the member is expired as soon as the engine's clock gets there.";

/** @type {Page} */
export const atRiskPage = {
  tab: "/at-risk",
  title: () => "At risk",
  mount(main, { stream, signal }) {
    const list = riskList({ stream });
    const body = h("div", {}, list.element);
    const show = (/** @type {AtRiskList} */ found) => {
      if (!body.contains(list.element)) put(body, list.element);
      list.show(found);
    };
    const load = loader({ ask: () => get("/api/at-risk", { limit: 50 }, { signal }), show, place: body });
    stream.addEventListener("at_risk", ({ detail }) => show(detail), { signal });
    stream.addEventListener("reload", load, { signal });
    animated(list.tick, 100, signal);
    main.append(head("At risk", ABOUT), body);
    load();
  },
};
