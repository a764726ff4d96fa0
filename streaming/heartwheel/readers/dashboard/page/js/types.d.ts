// Types that several modules share, and what classic scripts leave in the global scope. Only the checker reads them.

import "uplot";
import type { StreamEvents } from "answers";
import type { Router } from "./router.js";
import type { Stream } from "./stream.js";

/** The possible children of an element: null and undefined are left out, lists are flattened. */
export type Child = Node | string | number | null | undefined | false | readonly Child[];

/** Attributes, `on…` handlers and `dataset` of an element; without a value they are left out. */
export interface Props {
  dataset?: Record<string, string | number | undefined>;
  onclick?: (event: MouseEvent) => unknown;
  onchange?: (event: Event) => unknown;
  [attribute: string]: unknown;
}

/** How good or bad something is, as a colour. */
export type Tone = "good" | "calm" | "warn" | "bad";

/** The arguments of a page's `mount`. */
export interface Visit {
  args: string[];
  router: Router;
  stream: Stream;
  signal: AbortSignal;
}

/** The arguments of a view that follows the stream. */
export type Following = Pick<Visit, "stream" | "signal">;

export interface Page {
  /** The path of its tab, if it has one. */
  tab: string | null;
  /** The address that Escape leads to, if any. */
  escape?: string;
  title(...args: string[]): string;
  mount(main: HTMLElement, visit: Visit): void;
}

/** The events of a `Stream`: the server's, and its own. */
export interface Events extends StreamEvents {
  reload: null;
  link: null;
}

/** An element that rows of data are written into, one after the other. */
export interface Cell<Row> {
  element: HTMLElement;
  fill(row: Row): unknown;
}

/** A column of a table. */
export interface Column<Row> {
  label: string;
  width?: string;
  className?: string;
  about?: string;
  /** The order of this column's button, if it has one. */
  order?: string;
  cell(): Cell<Row>;
}

/** A link's texts, for `linked`. */
export interface LinkTexts {
  href: string;
  first: string;
  second?: string | null;
  titleSecond?: string | null;
}

/** Texts of two lines, for `twoLines`. */
export interface LineTexts {
  first: string;
  second?: string | null;
  title?: string | null;
  titleSecond?: string | null;
}

/** The content of a tag. */
export interface TagWords {
  icon: string;
  label: string;
  tone?: string;
  title?: string;
}

/** A line of a chart. */
export interface Line {
  label: string;
  colour: string;
  dash?: number[];
  fill?: boolean;
  bars?: boolean;
}

declare global {
  var heartwheelTheme: { dark(): boolean; set(theme: string): void };
}
