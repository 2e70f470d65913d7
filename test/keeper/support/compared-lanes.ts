/** Today's stores of adjustments and relays, each of whose writes is compared with the decision of the engine on the same state. */
import { expect } from 'chai'
import {
  type AdjustmentLaneAnswer,
  type AdjustmentLaneCommand,
  decideAdjustmentLane,
} from '../../../domain/exchange/decide/chain/adjustment-lane.ts'
import {
  decideRelayLane,
  type RelayLaneAnswer,
  type RelayLaneCommand,
} from '../../../domain/exchange/decide/chain/relay-lane.ts'
import { type Decider, decideOn } from '../../../domain/exchange/decide.ts'
import type { Inputs } from '../../../domain/exchange/inputs.ts'
import { ACCOUNTS_SHARD, CHAIN_SHARD, marketShard } from '../../../domain/journal/journal-row.ts'
import type { Millis } from '../../../domain/units.ts'
import type { AdjustmentStore } from '../../../keeper/adjustments/ports.ts'
import type { RelayStore } from '../../../keeper/relays/ports.ts'
import type { StoredState } from './stored-state.ts'

const INPUTS: Inputs = {
  now: 1 as Millis,
  report: () => null,
  session: () => null,
  reportRules: () => null,
  headTime: null,
  chainSeenAt: null,
  limits: { oracleMaxAgeMs: 0, chainMaxAgeMs: 0 },
}

/** The worker's clock states the times of today's rows, the engine's those of its own. */
const withoutTime = (row: object): object => ({ ...(JSON.parse(JSON.stringify(row)) as object), at: 0 })

/** Jobs catch errors of single writes, so a run checks at its end that there is none. */
export type Differences = Error[]

class ComparedWrites {
  readonly #stored: StoredState
  readonly #found: Differences
  #last: Promise<unknown> = Promise.resolve()

  constructor(stored: StoredState, found: Differences) {
    this.#stored = stored
    this.#found = found
  }

  /** One at a time: rows of two writes at once are indistinguishable. */
  async compare<Result, Command, Answer>(
    shard: string,
    write: () => Promise<Result>,
    { decider, command }: { readonly decider: Decider<Command, Answer>; readonly command: Command },
    check: (result: Result, answer: Answer) => void,
  ): Promise<Result> {
    const run = this.#last
      .catch(() => {})
      .then(async () => {
        await this.#stored.follow()
        const result = await write()
        const rows = await this.#stored.newRows(shard)
        const { entries, answer } = decideOn<Command, Answer, never>(this.#stored.state, INPUTS, {
          decider,
          command,
        })
        try {
          const decided = entries.filter((entry) => entry.shard !== CHAIN_SHARD)
          expect(decided.map((entry) => entry.shard)).to.deep.equal(decided.map(() => shard))
          expect(decided.map(({ row }) => withoutTime(row))).to.deep.equal(
            rows.map(({ row }) => withoutTime(row)),
          )
          check(result, answer)
        } catch (error) {
          this.#found.push(error as Error)
        }
        return result
      })
    this.#last = run
    return run
  }
}

export function comparedAdjustments(
  stored: StoredState,
  store: AdjustmentStore,
  found: Differences,
): AdjustmentStore {
  const writes = new ComparedWrites(stored, found)
  const decider: Decider<AdjustmentLaneCommand, AdjustmentLaneAnswer> = decideAdjustmentLane
  const ignore = (): void => {}
  return {
    ...store,
    storeSigned(lane, fence, signatures) {
      const [first] = signatures
      if (first === undefined) return store.storeSigned(lane, fence, signatures)
      const { marketId } = first.attempt
      const command: AdjustmentLaneCommand = {
        kind: 'adjustments_signed',
        marketId,
        relayer: lane.relayer,
        signatures: signatures.map(({ attempt, nonce, hash, asOf, maxRemovable }) => ({
          adjustmentId: attempt.adjustmentId,
          nonce,
          hash,
          asOf,
          maxRemovable,
        })),
      }
      const write = () => store.storeSigned(lane, fence, signatures)
      return writes.compare(marketShard(marketId), write, { decider, command }, (sent, answer) =>
        expect(answer).to.deep.equal({ kind: 'hashes', hashes: sent.map(({ hash }) => hash) }),
      )
    },
    noteSubmitted(attempts, fence, at) {
      const marketId = attempts[0]?.marketId
      const write = () => store.noteSubmitted(attempts, fence, at)
      if (marketId === undefined) return write()
      const adjustmentIds = attempts.map(({ adjustmentId }) => adjustmentId)
      const command: AdjustmentLaneCommand = { kind: 'adjustments_submitted', marketId, adjustmentIds }
      return writes.compare(marketShard(marketId), write, { decider, command }, ignore)
    },
    fail(attempt, fence, failure, at) {
      const { marketId, adjustmentId, status: seen } = attempt
      const { status, kind, reason } = failure
      const command: AdjustmentLaneCommand = {
        kind: 'fail_adjustment',
        marketId,
        adjustmentId,
        seen,
        status,
        failure: kind,
        reason,
      }
      const write = () => store.fail(attempt, fence, failure, at)
      return writes.compare(marketShard(marketId), write, { decider, command }, ignore)
    },
  }
}

export function comparedRelays(stored: StoredState, store: RelayStore, found: Differences): RelayStore {
  const writes = new ComparedWrites(stored, found)
  const decider: Decider<RelayLaneCommand, RelayLaneAnswer> = decideRelayLane
  const seenOf = ({ operation_id, status, relayer, relayer_nonce }: Parameters<RelayStore['fail']>[0]) => ({
    operationId: operation_id,
    status,
    relayer,
    relayerNonce: relayer_nonce,
  })
  const ignore = (): void => {}
  return {
    ...store,
    storeSigned(operation, lane, fence, signed) {
      const { hash, nonce } = signed
      const { relayer } = lane
      const command: RelayLaneCommand = {
        kind: 'relay_signed',
        operationId: operation.operation_id,
        relayer,
        nonce,
        hash,
      }
      const write = () => store.storeSigned(operation, lane, fence, signed)
      return writes.compare(ACCOUNTS_SHARD, write, { decider, command }, (sent, answer) =>
        expect(answer.kind).to.equal(sent === null ? 'changed' : 'done'),
      )
    },
    fail(operation, fence, end) {
      const { failure, reason } = end
      const command: RelayLaneCommand = { kind: 'fail_relay', seen: seenOf(operation), failure, reason }
      const write = () => store.fail(operation, fence, end)
      return writes.compare(ACCOUNTS_SHARD, write, { decider, command }, ignore)
    },
    requeue(operation, fence) {
      const command: RelayLaneCommand = { kind: 'requeue_relay', seen: seenOf(operation) }
      const write = () => store.requeue(operation, fence)
      return writes.compare(ACCOUNTS_SHARD, write, { decider, command }, ignore)
    },
  }
}
