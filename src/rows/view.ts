/** The lists of a selection, see selection.ts. */
interface Lists {
  readonly fields: readonly string[] | undefined;
  readonly policy: { readonly kind: 'hide' | 'show'; readonly paths: readonly string[] } | undefined;
}

/**
 * What a selection leaves of one document or array: the rests of its paths from there on. wasm/select.as.ts has the
 * same rules. Names and paths are byte strings (latin1 of their UTF-8), so that names in broken UTF-8 stay different.
 */
export class View {
  static readonly open = new View([], []);

  /** Only what each of these lists selects is shown. */
  readonly #picked: readonly (readonly string[])[];
  readonly #hidden: readonly string[];

  private constructor(picked: readonly (readonly string[])[], hidden: readonly string[]) {
    this.#picked = picked;
    this.#hidden = hidden;
  }

  static of({ fields, policy }: Lists): View {
    const picked = [fields, policy?.kind === 'show' ? policy.paths : undefined];
    const hidden = policy?.kind === 'hide' ? policy.paths : [];
    return View.#make(
      picked.filter((list) => list !== undefined).map((list) => list.map(byteString)),
      hidden.map(byteString),
    );
  }

  /** Whether only members are shown, so that a value without members is not. */
  get isPartial(): boolean {
    return this.#picked.length > 0;
  }

  /** The view of the value of a field. null: it is not shown. A partial view shows nothing of a value without members. */
  field(name: string): View | null {
    if (this === View.open) return this;
    const picked: (readonly string[])[] = [];
    for (const list of this.#picked) {
      if (list.includes(name)) continue;
      const below = restsBelow(list, name);
      if (below.length === 0) return null;
      picked.push(below);
    }
    if (this.#hidden.some((path) => name === path || name.startsWith(`${path}.`))) return null;
    return View.#make(picked, restsBelow(this.#hidden, name));
  }

  /** This view, of which only the value at the end of this path is left. */
  only(path: string): View {
    return View.#make([...this.#picked, [path]], this.#hidden);
  }

  static #make(picked: readonly (readonly string[])[], hidden: readonly string[]): View {
    return picked.length === 0 && hidden.length === 0 ? View.open : new View(picked, hidden);
  }
}

export function byteString(text: string): string {
  return Buffer.from(text).toString('latin1');
}

function restsBelow(paths: readonly string[], name: string): readonly string[] {
  const parent = `${name}.`;
  return paths.filter((path) => path.startsWith(parent)).map((path) => path.slice(parent.length));
}
