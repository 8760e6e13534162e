/** What one read of a log found. */
interface Page {
  /** How many keys. */
  readonly count: number;
  /** Whether it has everything that the log had. */
  readonly isWhole: boolean;
}

/**
 * Keeps the last page of a log for the readers that a change wakes together: they ask for the same. `asked` names the
 * reader's place and the end of the log, which is only added to, so what lies between them stays the same.
 */
export function lastPage<P extends Page>(): (asked: string, most: number, read: () => P) => P {
  let last: { readonly asked: string; readonly most: number; readonly page: P } | null = null;
  return (asked, most, read) => {
    if (last?.asked === asked && (last.most === most || (last.page.isWhole && last.page.count < most)))
      return last.page;
    const page = read();
    last = { asked, most, page };
    return page;
  };
}
