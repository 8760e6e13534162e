import type { Selection } from '../rows/selection.ts';

/** Why a key cannot open a part of a resource. Its operator has to mend the key, or add an index. */
export class ScopeFaults extends Error {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join('\n'));
    this.name = 'ScopeFaults';
    this.faults = faults;
  }
}

/** A selection without what a key hides. Adds to `faults` what cannot be hidden. */
export function hiding(shown: Selection, hide: readonly string[], faults: string[]): Selection {
  try {
    return shown.hiding(hide);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    faults.push(`hide: ${error.message}`);
    return shown;
  }
}
