import type { DocumentWriter } from './document-writer.ts';
import type { Declared } from './json-reader.ts';
import { fittingValue, writeText, type Kind, type Types } from './kinds.ts';
import { pathOf } from './fields.ts';
import { BadRow } from './row.ts';

interface Node extends Declared {
  fit: Declared['fit'];
  isWhole: boolean;
  readonly inner: Map<string, Node>;
}

/** The kinds that were declared for the fields of JSON rows by their paths. Paths lead through arrays. */
export class FieldTypes {
  readonly #fields = new Map<string, Node>();
  readonly #unseen: Set<string>;

  constructor(types: Types) {
    this.#unseen = new Set(types.keys());
    for (const [name, kind] of types) {
      let fields = this.#fields;
      let node: Node | undefined;
      for (const part of pathOf(name)) {
        node = fields.get(part) ?? { fit: null, isWhole: false, inner: new Map() };
        fields.set(part, node);
        fields = node.inner;
      }
      if (node) Object.assign(node, { fit: this.#fitting(name, kind), isWhole: kind === 'json' });
    }
  }

  /** The declared names that no row had so far. */
  get unseen(): readonly string[] {
    return [...this.#unseen];
  }

  /** What was declared for a top-level field. */
  of(field: string): Declared | null {
    return this.#fields.size === 0 ? null : (this.#fields.get(field) ?? null);
  }

  /** Gives elements a kind: a string is read as that kind, and a value of that kind stays, as null does. */
  #fitting(name: string, kind: Kind): Declared['fit'] {
    return (writer: DocumentWriter, bytes: Uint8Array, offset: number) => {
      this.#unseen.delete(name);
      const value = writer.valueAt(offset);
      try {
        if (typeof value === 'string' && kind !== 'string') {
          writer.rewind(offset);
          writeText(writer, bytes, value, kind, false);
          return;
        }
        const fitting = fittingValue(value, kind);
        if (fitting === value) return;
        writer.rewind(offset);
        writer.value(bytes, fitting);
      } catch (error) {
        throw error instanceof BadRow ? error.in('field', name) : error;
      }
    };
  }
}
