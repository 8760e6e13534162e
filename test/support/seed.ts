/**
 * Where random tests begin. The same number in every short run, so that a failure is about the change that is tested
 * and happens again. Long runs (LONG=1) begin anywhere, to find new cases. SEED=n repeats one of them.
 */
export const SEED = Number(process.env.SEED ?? (process.env.LONG === '1' ? Date.now() % 2 ** 31 : 1));
