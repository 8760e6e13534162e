import { CANDIDATES, programOf, type CandidateName } from './candidates.ts';
import type { Ground, Subject } from './kinds/kind.ts';
import { startProcess } from './process.ts';

/** Another commit of sluice, checked out beside this one. */
export interface Revision {
  readonly name: string;
  /** The path of its built program. */
  readonly cli: string;
}

/** A commit on a ground of its own. */
export interface GroundedRevision extends Revision {
  readonly ground: Ground;
}

/**
 * The running candidates on one ground. Each is started when it is first needed, and all are stopped
 * together.
 */
export class Lineup {
  readonly #ground: Ground;
  readonly #revision: GroundedRevision | null;
  readonly #started = new Map<string, Subject>();

  constructor(ground: Ground, revision: GroundedRevision | null) {
    this.#ground = ground;
    this.#revision = revision;
  }

  /** The subjects of a scenario. In a comparison with a revision, these are this sluice and that one. */
  async of(names: readonly CandidateName[]): Promise<Subject[]> {
    const subjects: Subject[] = [];
    if (!this.#revision) {
      for (const name of names) subjects.push(await this.#subject(name));
      return subjects;
    }
    for (const name of names.filter((each) => CANDIDATES[each].role === 'own'))
      subjects.push(await this.#subject(name), await this.#subject(name, this.#revision));
    return subjects;
  }

  async stop(): Promise<void> {
    for (const { process } of this.#started.values()) await process.stop();
    this.#started.clear();
  }

  async #subject(name: CandidateName, revision?: GroundedRevision): Promise<Subject> {
    const label = revision ? `${name} at ${revision.name}` : name;
    const running = this.#started.get(label);
    if (running) return running;
    const upstream = name === 'bare uWS' ? (await this.#subject('sluice')).process.url : null;
    const { ground } = revision ?? { ground: this.#ground };
    const here = programOf(name, ground.environment, upstream);
    const program = revision ? { ...here, file: revision.cli } : here;
    const process = await startProcess(program);
    this.#assertEngine(name, process.announced);
    const subject = { name: label, program, process, ground };
    this.#started.set(label, subject);
    return subject;
  }

  /**
   * Fails with REQUIRE_ALL when the engine is the slower one, which would otherwise be measured as if it were
   * the fast one.
   */
  #assertEngine(name: CandidateName, { engine }: Readonly<Record<string, unknown>>): void {
    if (name === 'sluice, node:http') return;
    if (process.env.REQUIRE_ALL && CANDIDATES[name].role === 'own' && engine !== 'uWebSockets.js')
      throw new Error(`the engine is ${String(engine)}, not uWebSockets.js`);
  }
}
