const MICRO = ['cursor', 'query', 'transcode', 'limiter', 'keys', 'telemetry', 'import', 'changes'] as const;

/** Runs all micro benches one after the other. Each prints its table. Rejects when a result is wrong. */
export async function runMicro(): Promise<void> {
  for (const name of MICRO) {
    process.stdout.write(`\n${name}\n`);
    await import(`./${name}.ts`);
  }
}
