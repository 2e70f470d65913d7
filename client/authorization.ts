/** The credential of requests and of the live feed: a fixed text, or a function that renews it. */

export type Authorization = string | (() => string | Promise<string>)

/**
 * A credential that is fetched once and kept until `renew`. Concurrent requests share one call, so that an
 * expired token is renewed once.
 */
export class Credential {
  readonly #source: Authorization | undefined
  #current: Promise<string> | null = null

  constructor(source: Authorization | undefined) {
    this.#source = source
  }

  /** The credential; undefined if there is none. */
  async value(): Promise<string | undefined> {
    const source = this.#source
    if (typeof source !== 'function') return source
    if (this.#current === null) {
      const asked = Promise.resolve().then(source)
      this.#current = asked
      asked.catch(() => this.#forget(asked))
    }
    return this.#current
  }

  /** Renews the credential `refused` by the exchange. Returns false if there is no other credential. */
  async renew(refused: string | undefined): Promise<boolean> {
    if (typeof this.#source !== 'function') return false
    const current = this.#current
    if (current !== null && (await current.catch(() => refused)) === refused) this.#forget(current)
    return (await this.value()) !== refused
  }

  #forget(asked: Promise<string>): void {
    if (this.#current === asked) this.#current = null
  }
}
