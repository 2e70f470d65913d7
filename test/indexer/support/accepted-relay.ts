/** Writes an accepted relay operation that waits for its transaction, without the checks of the api. */
import { ACCOUNTS_SHARD } from '../../../domain/journal/journal-row.ts'
import { relayRequest, relayRow, type StoredRelay } from '../../../domain/relays/stored-relay.ts'
import type { LocalEngine } from '../../support/local-engine.ts'

export type AcceptedRelay = Pick<
  StoredRelay,
  'operation_id' | 'user_id' | 'kind' | 'session_key' | 'owner' | 'nonce'
>

export function acceptRelay(engine: LocalEngine, accepted: AcceptedRelay): Promise<void> {
  const operation: StoredRelay = {
    ...accepted,
    market_id: null,
    minimum: null,
    target: '0x',
    gas: 1,
    deadline: 1,
    data: '0x',
    signature: '0x',
    status: 'QUEUED',
    failure: null,
    reason: null,
    relayer: null,
    relayer_nonce: null,
    tx_hash: null,
    block: null,
    updated_at: 0,
  }
  const row = { ...relayRow(operation), request: relayRequest(operation) }
  return engine.write([{ shard: ACCOUNTS_SHARD, row }])
}
