/** Delta debugging: removes elements from a failing list as long as it still fails. */

/** Calls `fails` with shorter and shorter lists in the same order. When `isOver` returns true, the list found so far is returned. */
export async function shrink<Item>(
  items: readonly Item[],
  fails: (items: readonly Item[]) => Promise<boolean>,
  isOver: () => boolean = () => false,
): Promise<readonly Item[]> {
  let left = items
  for (let size = Math.ceil(left.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let from = 0; from < left.length; ) {
      if (isOver()) return left
      const shorter = [...left.slice(0, from), ...left.slice(from + size)]
      if (shorter.length > 0 && (await fails(shorter))) left = shorter
      else from += size
    }
  }
  return left
}
