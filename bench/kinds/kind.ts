import type { Measured, Program } from '../process.ts';
import type { Round, StoreName } from '../results.ts';
import type { Pids } from '../usage.ts';

/** A running candidate. */
export interface Subject {
  readonly name: string;
  readonly program: Program;
  readonly process: Measured;
  readonly ground: Ground;
}

/** The effort of a round in this run. */
export interface Effort {
  /** The duration of a scenario that has no end of its own, in seconds. */
  readonly seconds: number;
  /** The share of readers, starts and so on, relative to the scenario's numbers. */
  readonly share: number;
}

/** The data on which a scenario runs. */
export interface Ground {
  readonly store: StoreName;
  /** The number of items in the store. */
  readonly rows: number;
  readonly mongodPid: number | null;
  /** The environment that makes a program use the store. */
  readonly environment: Readonly<Record<string, string>>;
  /** The number of cursors open in mongod. 0 with the embedded store. */
  openCursors(): Promise<number>;
  /** How many of them are change streams. */
  changeStreams(): Promise<number>;
}

export interface Job<Scenario> {
  readonly scenario: Scenario;
  readonly subject: Subject;
  /** The subject's. */
  readonly ground: Ground;
  readonly effort: Effort;
}

/** The answer of a candidate. The candidates of a scenario are compared by `text`. */
export interface Proof {
  readonly text: string;
  /** The rows and bytes of one answer. Every timed round must find the same. */
  readonly rows: number;
  readonly bytes: number;
}

/** One way to measure. The scenarios of a kind differ only in their data. */
export interface Kind<Scenario> {
  /** What this machine lacks to measure a scenario. null: nothing. */
  missing?(scenario: Scenario): Promise<string | null>;
  /**
   * Resolves with a subject's answer, or with null for a limit that gives no answer. Also warms the subject
   * up.
   */
  check(job: Job<Scenario>): Promise<Proof | null>;
  /** Whether rounds count only once the subject has answered for some seconds, each of which would else be faster than the last. */
  needsWarmth?(scenario: Scenario): boolean;
  /** Measures one round. Rejects when the answers differ from the proof. */
  measure(job: Job<Scenario>, proof: Proof): Promise<Round>;
}

export function pidsOf({ subject, ground }: Job<unknown>): Pids {
  return { server: subject.process.pid, mongod: ground.mongodPid };
}

export function urlOf({ subject }: Job<unknown>): string {
  if (subject.process.url === null) throw new TypeError(`${subject.name} is no server`);
  return subject.process.url;
}
