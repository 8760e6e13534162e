import { open } from 'node:fs/promises';
import { unlessMissing } from './directory.ts';

/** The layout of a write-ahead log (fileformat2.html, "WAL file format"). Numbers are big-endian, sizes in bytes. */
const HEADER = 32;
const FRAME_HEADER = 24;
const LITTLE_ENDIAN_SUMS = 0x377f0682;
const FRAMES_AT_ONCE = 256;
/** A transaction that outgrows the cache of SQLite sums up its frames when the last one is written: a kill may come first. */
const MOST_CACHED_FRAMES = 4_096;

/** The sums of a log up to a place in it. */
type Sums = readonly [number, number];

/**
 * What is wrong with the log of a file that was not stopped in order, or null. A killed process leaves a log that ends
 * with a part of a transaction. A transaction behind bytes that are not what was written is one that SQLite will not see. A
 * log that is missing was moved into the file meanwhile, by the last process that closed it.
 */
export async function faultOfLog(path: string): Promise<string | null> {
  const file = await unlessMissing(open(path, 'r'));
  if (!file) return null;
  try {
    const head = Buffer.alloc(HEADER);
    await file.read(head, 0, HEADER, 0);
    const isLittle = head.readUInt32BE(0) === LITTLE_ENDIAN_SUMS;
    let sums = summed([0, 0], head.subarray(0, 24), isLittle);
    if (!hasSums(head, 24, sums)) return `${path} does not begin with what was written`;
    const frameBytes = FRAME_HEADER + head.readUInt32BE(8);
    const frames = Buffer.alloc(FRAMES_AT_ONCE * frameBytes);
    let number = 0;
    let broken = 0;
    let lost = 0;
    let last = 0;
    for (let at = HEADER; ; at += frames.length) {
      const { bytesRead } = await file.read(frames, 0, frames.length, at);
      for (let start = 0; start + frameBytes <= bytesRead; start += frameBytes) {
        const frame = frames.subarray(start, start + frameBytes);
        number++;
        if (Buffer.compare(frame.subarray(8, 16), head.subarray(16, 24)) !== 0) broken ||= number;
        else if (broken === 0) {
          sums = summed(summed(sums, frame.subarray(0, 8), isLittle), frame.subarray(FRAME_HEADER), isLittle);
          if (!hasSums(frame, 16, sums)) broken = number;
        }
        const endsTransaction = frame.readUInt32BE(4) > 0;
        const isOfThisLog = Buffer.compare(frame.subarray(8, 16), head.subarray(16, 24)) === 0;
        if (broken > 0 && endsTransaction && isOfThisLog) {
          lost = lost + 1;
          last = number;
        }
      }
      if (bytesRead < frames.length) break;
    }
    if (lost === 0 || (lost === 1 && last - broken > MOST_CACHED_FRAMES)) return null;
    return `frame ${broken} of ${path} is not what was written, and ${lost} transactions from there on are lost`;
  } finally {
    await file.close();
  }
}

function summed([first, second]: Sums, bytes: Buffer, isLittle: boolean): Sums {
  for (let at = 0; at < bytes.length; at += 8) {
    first = (first + (isLittle ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at)) + second) >>> 0;
    second = (second + (isLittle ? bytes.readUInt32LE(at + 4) : bytes.readUInt32BE(at + 4)) + first) >>> 0;
  }
  return [first, second];
}

function hasSums(bytes: Buffer, at: number, [first, second]: Sums): boolean {
  return bytes.readUInt32BE(at) === first && bytes.readUInt32BE(at + 4) === second;
}
