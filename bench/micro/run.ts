const MICRO = ['cursor', 'query', 'transcode', 'limiter', 'telemetry'] as const;

/** Runs all micro benches, one after the other: each prints its table, and rejects when a result is not as it must be. */
export async function runMicro(): Promise<void> {
  for (const name of MICRO) {
    process.stdout.write(`\n${name}\n`);
    await import(`./${name}.ts`);
  }
}
