/**
 * Follows the forwarder's nonces and the accounts' lowest valid margin nonces, and ends the relay operations whose nonce the chain has
 * executed. Whose transaction executed it does not matter: any account may send a signed request. The caller holds the lock of the fact's shard.
 */
import type { Tx } from '../../db/client.ts'
import { loadForwarderNonce, saveForwarderNonce } from '../../db/forwarder-nonces.ts'
import { loadMarginNonceFloor, saveMarginNonceFloor } from '../../db/margin-nonce-floors.ts'
import { changeRelay, type RelayOperation, relaysOfNonce } from '../../db/relay-operations.ts'
import { loadSessionKey } from '../../db/session-keys.ts'
import type { ForwardRequestExecutedFact, MarginNoncesInvalidatedFact } from '../../domain/chain/facts.ts'
import type { ForwardRequestExecuted } from '../../domain/journal/accounts-row.ts'
import { ACCOUNTS_SHARD, marketShard } from '../../domain/journal/journal-row.ts'
import type { MarginNoncesInvalidated } from '../../domain/journal/margin-nonces-row.ts'
import { isOpenRelay } from '../../domain/relays/operation.ts'
import {
  endedRelay,
  type RelayEnd,
  relayEffectOf,
  relayEndOf,
  reopenedRelay,
} from '../../domain/relays/stored-relay.ts'
import type { MinedAt } from '../../domain/settlement/settle-part.ts'
import type { LockedShards, RowPlace } from './locked-shards.ts'

interface Context {
  readonly tx: Tx
  readonly shards: LockedShards
  readonly mined: MinedAt
}

/** The events of the call precede this one in its transaction, so their effects are stored. */
export async function applyForwardRequest(
  { tx, shards, mined }: Context,
  { signer, nonce, success }: ForwardRequestExecutedFact,
): Promise<RowPlace> {
  const before = await loadForwarderNonce(tx, signer)
  await saveForwarderNonce(tx, signer, nonce + 1, mined.block)
  for (const operation of await relaysOfNonce(tx, signer, nonce)) {
    const end = await endOf(tx, operation, success)
    // An operation that has failed stays failed, unless the chain has done after all what it requested.
    if (end !== null && !isOpenRelay(operation.status)) continue
    shards.append(ACCOUNTS_SHARD, await changeRelay(tx, operation, endedRelay(mined, end)))
  }
  return shards.append(ACCOUNTS_SHARD, {
    kind: 'forward_request_executed',
    rollback: false,
    ...{ signer, nonce, before, success, ...mined },
  })
}

/** Null if the chain's state is the requested one. */
async function endOf(tx: Tx, operation: RelayOperation, success: boolean): Promise<RelayEnd | null> {
  const effect = relayEffectOf(operation)
  const isOfMarket = effect.kind === 'invalidate_margin_nonces'
  const observed = {
    key: isOfMarket ? null : await loadSessionKey(tx, { owner: operation.owner, key: effect.sessionKey }),
    floor: isOfMarket
      ? await loadMarginNonceFloor(tx, { marketId: effect.marketId, account: operation.owner })
      : 0n,
  }
  return relayEndOf(effect, success, observed)
}

export async function rollBackForwardRequest(
  tx: Tx,
  shards: LockedShards,
  row: ForwardRequestExecuted,
): Promise<void> {
  await saveForwarderNonce(tx, row.signer, row.before, row.block)
  for (const operation of await relaysOfNonce(tx, row.signer, row.nonce)) {
    if (operation.block !== row.block) continue
    shards.append(ACCOUNTS_SHARD, await changeRelay(tx, operation, reopenedRelay(operation, row.at)))
  }
  shards.append(ACCOUNTS_SHARD, { ...row, rollback: true })
}

export async function applyMarginNonces(
  { tx, shards, mined }: Context,
  { spec: { marketId }, account, minimum }: MarginNoncesInvalidatedFact,
): Promise<RowPlace> {
  const before = await loadMarginNonceFloor(tx, { marketId, account })
  await saveMarginNonceFloor(tx, { marketId, account }, minimum, mined.block)
  return shards.append(marketShard(marketId), {
    kind: 'margin_nonces_invalidated',
    rollback: false,
    ...{ account, before: before.toString(), minimum: minimum.toString(), ...mined },
  })
}

export async function rollBackMarginNonces(
  tx: Tx,
  marketId: number,
  row: MarginNoncesInvalidated,
): Promise<MarginNoncesInvalidated> {
  await saveMarginNonceFloor(tx, { marketId, account: row.account }, BigInt(row.before), row.block)
  return { ...row, rollback: true }
}
