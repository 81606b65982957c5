/** Figures that share an axis of time, a cursor, and lines that are switched off. */

import type { Panel } from "./data";

/** The plot of a panel, as its group sees it. */
export interface Member {
  /** Draws the view and the lines anew, when it is on the screen. */
  redraw(): void;
  /** Moves the cursor; `null` takes it away. */
  cursor(at: number | null): void;
}

/** Anything that follows the cursor, such as the picture of a path. */
export type Follower = (at: number | null) => void;

/** Figures over one axis. */
export class Group {
  readonly from: number;
  readonly to: number;
  /** The visible part of the axis. */
  view: [number, number];
  private readonly members: Member[] = [];
  private readonly followers: Follower[] = [];
  private pending = 0;
  private at: number | null = null;
  private source: Member | undefined;

  constructor(
    panel: Panel,
    private readonly hidden: Set<string>,
  ) {
    this.from = panel.across.from;
    this.to = panel.across.to;
    this.view = [this.from, this.to];
  }

  add(member: Member): void {
    this.members.push(member);
  }

  follow(follower: Follower): void {
    this.followers.push(follower);
  }

  get zoomed(): boolean {
    return this.view[0] > this.from || this.view[1] < this.to;
  }

  isHidden(label: string): boolean {
    return this.hidden.has(label);
  }

  /** Shows the part between two places; at least a ten-thousandth of the axis. */
  show(from: number, to: number): void {
    const all = this.to - this.from;
    const span = Math.min(Math.max(to - from, all / 10_000), all);
    const low = Math.min(Math.max(from, this.from), this.to - span);
    this.view = [low, low + span];
    this.changed();
  }

  reset(): void {
    this.view = [this.from, this.to];
    this.changed();
  }

  /** Magnifies around a place. */
  zoom(factor: number, around?: number): void {
    const [from, to] = this.view;
    const middle = around ?? (from + to) / 2;
    this.show(middle - (middle - from) / factor, middle + (to - middle) / factor);
  }

  /** Moves by a share of the view. */
  pan(share: number): void {
    const [from, to] = this.view;
    const by = (to - from) * share;
    this.show(from + by, to + by);
  }

  /** Draws all members before the next frame of the screen. */
  changed(): void {
    if (this.pending !== 0) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      for (const member of this.members) member.redraw();
      // The cursors of plots that were drawn later still stand where the old view had the place.
      if (this.at !== null) this.cursor(this.at, this.source);
    });
  }

  cursor(at: number | null, source?: Member): void {
    [this.at, this.source] = [at, source];
    for (const member of this.members) if (member !== source) member.cursor(at);
    for (const follower of this.followers) follower(at);
  }
}
