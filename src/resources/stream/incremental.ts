/**
 * Headers of answers whose content is of use before its end, for what stands between server and reader: `Incremental`
 * (RFC 10036) asks intermediaries to pass on what they have, and X-Accel-Buffering says the same to nginx.
 */
export const INCREMENTAL = { incremental: '?1', 'x-accel-buffering': 'no' };
