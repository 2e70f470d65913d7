/** The newest revocation of each session key that was accepted for relaying: derived from the relays. */
import type { DocumentTable } from './document-table.ts'
import { PartedMap } from './parted-map.ts'
import { keyOfSessionKey, type RelayRow } from './tables/chain.ts'

export class Revocations {
  /** Ids of the key's revocations, the newest last. */
  readonly #byKey = new PartedMap<readonly string[]>()
  readonly #relays: DocumentTable<RelayRow>

  constructor(relays: DocumentTable<RelayRow>) {
    this.#relays = relays
    relays.observe((before, after) => {
      if (before !== undefined && after !== undefined) return
      const { kind, owner, session_key, operation_id } = (before ?? after) as RelayRow
      if (kind !== 'revoke_session_key' || session_key === null) return
      const key = keyOfSessionKey({ owner, key: session_key })
      const others = (this.#byKey.get(key) ?? []).filter((id) => id !== operation_id)
      if (after !== undefined) this.#byKey.set(key, this.#sorted([...others, operation_id]))
      else if (others.length > 0) this.#byKey.set(key, others)
      else this.#byKey.delete(key)
    })
  }

  /** Whether the key's newest revocation is not on the chain. */
  isRevoking(owner: string, key: string): boolean {
    const newest = this.#byKey.get(keyOfSessionKey({ owner, key }))?.at(-1)
    return newest !== undefined && this.#relays.need(newest).status !== 'CONFIRMED'
  }

  #sorted(ids: readonly string[]): readonly string[] {
    const createdAt = (id: string): number => this.#relays.need(id).created_at
    return ids.toSorted((a, b) => createdAt(a) - createdAt(b) || (a < b ? -1 : 1))
  }
}
