/** Resolves barriers once all earlier commands have replies, at a cost independent of their number. */

interface Generation {
  open: number
  isClosed: boolean
  readonly ended: PromiseWithResolvers<void>
}

const newGeneration = (): Generation => ({ open: 0, isClosed: false, ended: Promise.withResolvers() })

export class ReceivedCommands {
  /** Commands since the last barrier. */
  #generation = newGeneration()
  #earlier: Promise<unknown> = Promise.resolve()

  add(replied: Promise<unknown>): void {
    const generation = this.#generation
    generation.open += 1
    void replied.then(() => {
      generation.open -= 1
      if (generation.isClosed && generation.open === 0) generation.ended.resolve()
    })
  }

  /** Resolves once every command added so far has its reply. */
  replied(): Promise<unknown> {
    const generation = this.#generation
    if (generation.open > 0) {
      generation.isClosed = true
      this.#earlier = Promise.all([this.#earlier, generation.ended.promise])
      this.#generation = newGeneration()
    }
    return this.#earlier
  }
}
