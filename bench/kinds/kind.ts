import type { Measured, Program } from '../process.ts';
import type { Round, StoreName } from '../results.ts';
import type { Pids } from '../usage.ts';

/** A candidate at work. */
export interface Subject {
  readonly name: string;
  readonly program: Program;
  readonly process: Measured;
}

/** What rounds of this run may take. */
export interface Effort {
  /** Of a scenario that has no end by itself. */
  readonly seconds: number;
  /** Readers, starts and so on, as a share of what the scenario says. */
  readonly share: number;
}

/** The data a scenario runs on. */
export interface Ground {
  readonly store: StoreName;
  /** Items in it. */
  readonly rows: number;
  readonly mongodPid: number | null;
  /** Cursors that mongod has open; 0 with the embedded store. */
  openCursors(): Promise<number>;
}

export interface Job<Scenario> {
  readonly scenario: Scenario;
  readonly subject: Subject;
  readonly ground: Ground;
  readonly effort: Effort;
}

/** What a candidate answered: candidates of a scenario are compared by `text`. */
export interface Proof {
  readonly text: string;
  /** Of one answer: what a timed round must find again. */
  readonly rows: number;
  readonly bytes: number;
}

/** One way to measure. Scenarios of the kind differ in their data only. */
export interface Kind<Scenario> {
  /** What a subject answers; null for a limit that gives no answer. Warms the subject up, too. */
  check(job: Job<Scenario>): Promise<Proof | null>;
  /** One round. Rejects when the answers are not those of the proof. */
  measure(job: Job<Scenario>, proof: Proof): Promise<Round>;
}

export function pidsOf({ subject, ground }: Job<unknown>): Pids {
  return { server: subject.process.pid, mongod: ground.mongodPid };
}

export function urlOf({ subject }: Job<unknown>): string {
  if (subject.process.url === null) throw new TypeError(`${subject.name} is no server`);
  return subject.process.url;
}
