import { quoted } from '../terminal/text.ts';
import { valueOfField, type Kind, type Types } from './kinds.ts';
import { pathOf, type Path } from './paths.ts';
import { BadRow } from './row.ts';

/** A declared kind of a field. */
interface Declared {
  readonly name: string;
  /** The path inside the top-level field. */
  readonly inner: Path;
  readonly kind: Kind;
}

/** Gives the fields of JSON rows the kinds that were declared for their paths. Paths lead through arrays. */
export class FieldTypes {
  readonly #byField = new Map<string, Declared[]>();
  readonly #unseen: Set<string>;

  constructor(types: Types) {
    this.#unseen = new Set(types.keys());
    for (const [name, kind] of types) {
      const [field = '', ...inner] = pathOf(name);
      this.#byField.set(field, [...(this.#byField.get(field) ?? []), { name, inner, kind }]);
    }
  }

  /** The declared names that no row had so far. */
  get unseen(): readonly string[] {
    return [...this.#unseen];
  }

  /** The value of a top-level field with its declared kinds. Throws BadRow when a value does not fit its kind. */
  apply(field: string, value: unknown): unknown {
    const declared = this.#byField.get(field);
    return declared ? declared.reduce((typed, one) => this.#typed(typed, one.inner, one), value) : value;
  }

  #typed(value: unknown, path: Path, declared: Declared): unknown {
    const [next, ...rest] = path;
    if (Array.isArray(value) && (next !== undefined || declared.kind !== 'json'))
      return value.map((element) => this.#typed(element, path, declared));
    if (next === undefined) return this.#valueOf(value, declared);
    if (value instanceof Map && value.has(next))
      value.set(next, this.#typed(value.get(next), rest, declared));
    return value;
  }

  #valueOf(value: unknown, { name, kind }: Declared): unknown {
    this.#unseen.delete(name);
    try {
      return valueOfField(value, kind);
    } catch (error) {
      if (error instanceof BadRow) throw new BadRow(`field ${quoted(name)}: ${error.message}`);
      throw error;
    }
  }
}
