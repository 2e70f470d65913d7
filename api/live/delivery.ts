/** The frames of one moment. Readers of the same topics share a list, so that its bytes are encoded once. */
import type { Frame, Reader } from './ports.ts'

type Frames = readonly Frame[]
const NONE: Frames = []

export class Delivery {
  readonly #lists = new Map<Reader, Frames>()

  add(readers: Iterable<Reader>, frames: Frames): void {
    /** Extended lists, by the readers' list so far. */
    const longer = new Map<Frames, Frames>()
    for (const reader of readers) {
      const before = this.#lists.get(reader) ?? NONE
      const list = longer.get(before) ?? [...before, ...frames]
      longer.set(before, list)
      this.#lists.set(reader, list)
    }
  }

  send(): void {
    for (const [reader, frames] of this.#lists) reader.send(frames)
  }
}
