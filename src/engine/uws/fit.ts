/**
 * Fits an ELF64 addon that was linked against a newer glibc to an older one.
 *
 * The binaries of uWebSockets.js need GLIBC_2.38 only for `__isoc23_strtol`, `__isoc23_strtoul` and
 * `__isoc23_sscanf`. A C23 compiler uses these names for `strtol`, `strtoul` and `sscanf`, which differ in one thing
 * only (they read `0b101`). Two edits undo that:
 * - Each of these symbols gets its plain name. The linker's string table already has it: it is the end of the old
 *   name, so the symbol's name offset moves on by `__isoc23_`. (Overwriting the string would not work: the plain
 *   `strtol` that the addon also imports may share its tail.)
 * - The entry "needs GLIBC_2.38" becomes a second "needs" of the oldest version in the file, which every glibc has.
 */
const PREFIX = '__isoc23_';
const NEWER = 'GLIBC_2.38';

/** Section types of ELF (gABI and the GNU extensions): symbols, symbol versions, needed versions. */
const SHT_DYNSYM = 11;
const SHT_GNU_VERSYM = 0x6fffffff;
const SHT_GNU_VERNEED = 0x6ffffffe;
const SYMBOL_BYTES = 24;

interface Section {
  readonly type: number;
  readonly offset: number;
  readonly size: number;
  readonly link: number;
  readonly info: number;
}

/** One "needs this version" entry: its place in the file, the version's name, and the index that symbols refer to. */
interface Need {
  readonly at: number;
  readonly name: string;
  readonly index: number;
}

/** A fitted copy of `original`, whose hash the caller checks. Throws when the structure is not the expected one. */
export function fitToOlderGlibc(original: Uint8Array): Buffer {
  const file = Buffer.from(original);
  const sections = readSections(file);
  const symbols = sectionOf(sections, SHT_DYNSYM);
  const strings = sections[symbols.link];
  if (strings === undefined) throw new Error('the addon has no table of names');
  const needs = readNeeds(file, sectionOf(sections, SHT_GNU_VERNEED), strings);
  const newer = needs.filter(({ name }) => name === NEWER);
  const base = needs.find(({ name }) => name === 'GLIBC_2.2.5' || name === 'GLIBC_2.17');
  if (newer.length === 0 || base === undefined) throw new Error(`the addon does not need ${NEWER}`);

  const versions = sectionOf(sections, SHT_GNU_VERSYM);
  for (let i = 0; i < symbols.size / SYMBOL_BYTES; i++) {
    const version = file.readUInt16LE(versions.offset + 2 * i) & 0x7fff;
    if (!newer.some(({ index }) => index === version)) continue;
    const at = symbols.offset + SYMBOL_BYTES * i;
    const name = text(file, strings, file.readUInt32LE(at));
    if (!name.startsWith(PREFIX)) throw new Error(`the addon needs ${name} of ${NEWER}`);
    file.writeUInt32LE(file.readUInt32LE(at) + PREFIX.length, at);
  }
  for (const { at } of newer) {
    file.copy(file, at, base.at, base.at + 4); // the version's hash
    file.copy(file, at + 8, base.at + 8, base.at + 12); // the offset of its name
  }
  return file;
}

function readSections(file: Buffer): Section[] {
  const table = Number(file.readBigUInt64LE(0x28));
  const entryBytes = file.readUInt16LE(0x3a);
  return Array.from({ length: file.readUInt16LE(0x3c) }, (_, i) => {
    const at = table + i * entryBytes;
    return {
      type: file.readUInt32LE(at + 4),
      offset: Number(file.readBigUInt64LE(at + 0x18)),
      size: Number(file.readBigUInt64LE(at + 0x20)),
      link: file.readUInt32LE(at + 0x28),
      info: file.readUInt32LE(at + 0x2c),
    };
  });
}

function sectionOf(sections: readonly Section[], type: number): Section {
  const section = sections.find((candidate) => candidate.type === type);
  if (section === undefined) throw new Error(`the addon has no ELF section of type ${type}`);
  return section;
}

function readNeeds(file: Buffer, section: Section, strings: Section): Need[] {
  const needs: Need[] = [];
  let library = section.offset;
  for (let i = 0; i < section.info; i++) {
    let at = library + file.readUInt32LE(library + 8);
    for (let left = file.readUInt16LE(library + 2); left > 0; left--) {
      const name = text(file, strings, file.readUInt32LE(at + 8));
      needs.push({ at, name, index: file.readUInt16LE(at + 6) });
      at += file.readUInt32LE(at + 12);
    }
    library += file.readUInt32LE(library + 12);
  }
  return needs;
}

function text(file: Buffer, strings: Section, offset: number): string {
  const start = strings.offset + offset;
  return file.toString('latin1', start, file.indexOf(0, start));
}
