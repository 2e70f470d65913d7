/** Yields items in order without sorting unread items. */
export class BinaryHeap<Item> {
  readonly #items: Item[]
  readonly #compare: (a: Item, b: Item) => number

  /** Takes ownership of `items`. `compare` is negative if its first argument comes first. */
  constructor(compare: (a: Item, b: Item) => number, items: Item[] = []) {
    this.#compare = compare
    this.#items = items
    for (let at = (items.length >> 1) - 1; at >= 0; at--) this.#sink(at)
  }

  get first(): Item | undefined {
    return this.#items[0]
  }

  push(item: Item): void {
    const items = this.#items
    let at = items.length
    items.push(item)
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (this.#compare(item, items[parent] as Item) >= 0) break
      items[at] = items[parent] as Item
      at = parent
    }
    items[at] = item
  }

  pop(): Item | undefined {
    const first = this.#items[0]
    const last = this.#items.pop()
    if (last !== undefined && this.#items.length > 0) {
      this.#items[0] = last
      this.#sink(0)
    }
    return first
  }

  #sink(from: number): void {
    const items = this.#items
    const item = items[from] as Item
    let at = from
    for (;;) {
      let child = 2 * at + 1
      if (child >= items.length) break
      if (child + 1 < items.length && this.#compare(items[child + 1] as Item, items[child] as Item) < 0)
        child++
      if (this.#compare(items[child] as Item, item) >= 0) break
      items[at] = items[child] as Item
      at = child
    }
    items[at] = item
  }
}
