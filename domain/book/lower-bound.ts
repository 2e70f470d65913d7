/** Index of the first key in an ascending list that is at or above the given key. */
export function lowerBound(keys: readonly number[], key: number): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((keys[middle] as number) < key) low = middle + 1
    else high = middle
  }
  return low
}
