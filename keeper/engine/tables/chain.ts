/** Tables that owners, signers and the chain change beside positions, and the chain's recent blocks. */
import type { Statement } from '../../../db/round-trip.ts'
import type { Columns, StateTable } from '../../../db/state-tables.ts'
import {
  attemptsTable,
  blocksTable,
  clientRequestsTable,
  connectionSwitchesTable,
  firedSwitchesTable,
  forwarderNoncesTable,
  fundingStatesTable,
  liquidationsTable,
  nonceFloorsTable,
  relayersTable,
  relaysTable,
  removeBlocks,
  sessionKeysTable,
  setNextBlock,
  setPauseEnd,
  switchesTable,
  usedNoncesTable,
} from '../../../db/written-chain-tables.ts'
import type { Entry } from '../../../domain/exchange/apply.ts'
import type { ExchangeState } from '../../../domain/exchange/state.ts'
import {
  keyOfFloor,
  keyOfFunding,
  keyOfLiquidation,
  keyOfNonce,
  keyOfSessionKey,
} from '../../../domain/exchange/tables/chain.ts'
import { keyOfRequest } from '../../../domain/exchange/tables/requests.ts'
import { keyOfFired } from '../../../domain/exchange/tables/switches.ts'
import type { ChangedRows, Observed, WrittenMark } from './changes.ts'
import { deleting, following, keeping, rowsOf, statements, type TablePart } from './part.ts'

type Part = (mark: WrittenMark, state: ExchangeState) => TablePart

/** A table with the columns of the state's rows. Rows that the state drops are deleted. */
const mirroring =
  <Row extends object>(
    observed: (state: ExchangeState) => Observed<Row>,
    keyOf: (row: Row) => string,
    table: StateTable,
  ): Part =>
  (mark, state) =>
    following(mark, observed(state), { keyOf, columnsOf: (row) => ({ ...row }) as Columns }, (rows) =>
      deleting(table, rows),
    )

const liquidations: Part = (mark, state) =>
  following(
    mark,
    state.liquidations,
    {
      keyOf: ({ marketId, account }) => keyOfLiquidation(marketId, account),
      columnsOf: (row) => ({
        market_id: row.marketId,
        user_id: row.account,
        number: row.number,
        stage: row.stage,
        start_size: row.startSize,
        order_id: row.orderId,
        widenings: row.widenings,
        resting: row.resting,
        queue_no: row.queueNo,
        attempts: row.attempts,
        failed_kind: row.failedKind,
        retry_at: row.retryAt,
        seen_seq: row.seenSeq,
        started_at: row.startedAt,
      }),
    },
    (rows) => deleting(liquidationsTable, rows),
  )

const attempts: Part = (mark, state) =>
  following(
    mark,
    state.attempts,
    { keyOf: ({ adjustment_id }) => adjustment_id, columnsOf: (row) => ({ ...row }) },
    (rows) => keeping(attemptsTable, rows),
  )

const relays: Part = (mark, state) =>
  following(
    mark,
    state.relays,
    { keyOf: ({ operation_id }) => operation_id, columnsOf: (row) => ({ ...row }) },
    (rows) => keeping(relaysTable, rows),
  )

/** Nonces of a key that signs for no lane yet are in the state alone. */
const lanes: Part = (mark, state) =>
  following(
    mark,
    state.lanes,
    { keyOf: ({ relayer }) => relayer, columnsOf: ({ relayer, ...row }) => ({ address: relayer, ...row }) },
    ({ put, changed }) =>
      statements(
        relayersTable.put,
        [...put, ...changed].filter(({ lane }) => lane !== null),
      ),
  )

/** Requests that the state has released stay until the api prunes them. */
const requests: Part = (mark, state) =>
  following(
    mark,
    state.requests,
    {
      keyOf: keyOfRequest,
      columnsOf: ({ user_id, client_request_id, digest, at, results, balance, read_after }) => ({
        user_id,
        client_request_id,
        digest: `\\x${Buffer.from(digest.replace(/^0x/, ''), 'hex').toString('hex')}`,
        answer: JSON.stringify({ results, balance, read_after }),
        created_at: at,
      }),
    },
    (rows) => keeping(clientRequestsTable, rows),
  )

// ---------------------------------------------------------------------- blocks

const position: Part = (mark, state) =>
  following(
    mark,
    state.chain,
    { keyOf: () => '', columnsOf: ({ next_block }) => ({ next_block }) },
    ({ put, changed }) => [...put, ...changed].map(({ next_block }) => setNextBlock(next_block as number)),
  )

const bank: Part = (mark, state) =>
  following(
    mark,
    state.bank,
    { keyOf: () => '', columnsOf: ({ pause_ends_at }) => ({ pause_ends_at }) },
    ({ put, changed }) =>
      [...put, ...changed].map(({ pause_ends_at }) => setPauseEnd(pause_ends_at as number)),
  )

/** A block that can no longer be rolled back stays in the table. One that has left the chain is deleted, before another one takes its number. */
const blocks: Part = (mark, state) => {
  const write = ({ put, changed }: ChangedRows, group: readonly Entry[]): Statement[] => {
    const left = [...new Set(rowsOf(group, 'block_left').map(({ row }) => row.number))]
    const again = left.flatMap((number) => state.blocks.get(String(number)) ?? [])
    const rows = new Map([...again, ...put, ...changed].map((row) => [row.number, { ...row }]))
    return [
      ...(left.length === 0 ? [] : [removeBlocks(left)]),
      ...statements(blocksTable.put, [...rows.values()]),
    ]
  }
  return following(
    mark,
    state.blocks,
    {
      keyOf: ({ number }) => number,
      columnsOf: ({ number, hash, parent_hash, timestamp }) => ({ number, hash, parent_hash, timestamp }),
    },
    write,
  )
}

export const chainParts: readonly Part[] = [
  mirroring((state) => state.fundings, keyOfFunding, fundingStatesTable),
  liquidations,
  attempts,
  mirroring((state) => state.usedNonces, keyOfNonce, usedNoncesTable),
  mirroring((state) => state.nonceFloors, keyOfFloor, nonceFloorsTable),
  mirroring((state) => state.sessionKeys, keyOfSessionKey, sessionKeysTable),
  mirroring(
    (state) => state.forwarderNonces,
    ({ signer }) => signer,
    forwarderNoncesTable,
  ),
  relays,
  lanes,
  mirroring(
    (state) => state.switches,
    ({ user_id }) => String(user_id),
    switchesTable,
  ),
  mirroring(
    (state) => state.connectionSwitches,
    ({ connection_id }) => connection_id,
    connectionSwitchesTable,
  ),
  mirroring((state) => state.firedSwitches, keyOfFired, firedSwitchesTable),
  requests,
  blocks,
  position,
  bank,
]
