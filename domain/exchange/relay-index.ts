/** Finds relay operations and session keys by owner. Derived from their tables. */
import { isOpenRelay } from '../relays/operation.ts'
import { DocumentGroups } from './document-groups.ts'
import { type ChainTables, keyOfSessionKey, type RelayRow, type SessionKeyRow } from './tables/chain.ts'

export class RelayIndex {
  readonly #open: DocumentGroups<RelayRow>
  readonly #byNonce: DocumentGroups<RelayRow>
  readonly #revocations: DocumentGroups<RelayRow>
  readonly #keys: DocumentGroups<SessionKeyRow>

  constructor({ relays, sessionKeys }: Pick<ChainTables, 'relays' | 'sessionKeys'>) {
    const keyOf = ({ operation_id }: RelayRow): string => operation_id
    this.#open = new DocumentGroups(relays, {
      keyOf,
      groupOf: ({ owner, status }) => (isOpenRelay(status) ? owner : null),
    })
    this.#byNonce = new DocumentGroups(relays, { keyOf, groupOf: ({ owner, nonce }) => `${owner}-${nonce}` })
    this.#revocations = new DocumentGroups(relays, {
      keyOf,
      groupOf: ({ owner, session_key, kind }) =>
        kind === 'revoke_session_key' ? keyOfSessionKey({ owner, key: session_key as string }) : null,
    })
    this.#keys = new DocumentGroups(sessionKeys, {
      keyOf: keyOfSessionKey,
      groupOf: ({ owner }) => owner,
    })
  }

  /** The owner's operations that the chain may still execute, by nonce. */
  open(owner: string): readonly RelayRow[] {
    return this.#open.of(owner).sort((a, b) => a.nonce - b.nonce)
  }

  /** All operations of the owner with this nonce, the oldest first. */
  withNonce(owner: string, nonce: number): readonly RelayRow[] {
    return this.#byNonce
      .of(`${owner}-${nonce}`)
      .sort((a, b) => a.created_at - b.created_at || (a.operation_id < b.operation_id ? -1 : 1))
  }

  /** Whether the key's newest accepted revocation is not on chain yet. */
  isRevoking(owner: string, key: string): boolean {
    const newest = this.#revocations
      .of(keyOfSessionKey({ owner, key }))
      .reduce<RelayRow | null>(
        (last, one) => (last === null || one.created_at > last.created_at ? one : last),
        null,
      )
    return newest !== null && newest.status !== 'CONFIRMED'
  }

  keysOf(owner: string): readonly SessionKeyRow[] {
    return this.#keys.of(owner)
  }
}
