import type { ObjectStore } from '../store/objects.ts';

/** The editions of all resources, as their routes see them. */
export interface Editions {
  /** Where their files are. */
  readonly objects: ObjectStore;
  /** Whether a resource has editions. */
  declared(resource: string): boolean;
  /** Whether caches that many readers share may keep its files: it is declared so, or no keys are configured. */
  isPublic(resource: string): boolean;
  /**
   * The newest edition of a declared resource, or how far the first one has come. Null: nobody makes one yet. Not older than
   * what this process has given, and at most a few seconds old.
   */
  newest(resource: string, signal: AbortSignal): Promise<NewestEdition | MakingProgress | null>;
  /**
   * Asks for an edition of a declared resource now. Resolves when that is noted, so that a server that is killed forgets
   * nothing; an edition that is being made counts if it has not taken its time yet.
   */
  make(resource: string, signal: AbortSignal): Promise<void>;
}

export interface NewestEdition {
  /** An `EditionHead` as JSON, as it is in `edition.json`. The same array until there is another head. */
  readonly head: Uint8Array;
}

/** How far the first edition has come. */
export interface MakingProgress {
  readonly progress: {
    readonly rows: number;
    /** The rows of the resource when it was begun. Null: not known. */
    readonly of: number | null;
    /** The bytes of NDJSON of these rows. */
    readonly bytes: number;
  };
}
