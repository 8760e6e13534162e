import type { Mutant } from './mutate.ts';

/** A fault that no test can notice, or that none has to. */
interface Harmless extends Pick<Mutant, 'file' | 'original' | 'mutated'> {
  readonly reason: string;
}

const HARMLESS: readonly Harmless[] = [];

/** Why no test notices this fault. null: one should. */
export function reasonToLive({ file, original, mutated }: Mutant): string | null {
  const known = HARMLESS.find(
    (one) => one.file === file && one.original === original && one.mutated === mutated,
  );
  return known?.reason ?? null;
}
