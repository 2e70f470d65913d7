/** Makes a list that fails as short as it can be made by leaving elements out: delta debugging. */

/** `fails` is asked about ever shorter lists, the order kept. `isOver`: nothing more is tried. */
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
