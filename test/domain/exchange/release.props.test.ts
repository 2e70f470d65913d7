/** Laws of releases, and of the lanes of adjustments and relays: repeated, late and contradicting commands of workers. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { Entry } from '../../../domain/exchange/apply.ts'
import { apply } from '../../../domain/exchange/apply.ts'
import {
  type AdjustmentLaneAnswer,
  type AdjustmentLaneCommand,
  decideAdjustmentLane,
} from '../../../domain/exchange/decide/chain/adjustment-lane.ts'
import { decideLane, type LaneAnswer, type LaneCommand } from '../../../domain/exchange/decide/chain/lanes.ts'
import {
  decideRelayLane,
  type RelayLaneAnswer,
  type RelayLaneCommand,
} from '../../../domain/exchange/decide/chain/relay-lane.ts'
import {
  decideRelease,
  MOST_RELEASED,
  type ReleaseAnswer,
  type ReleaseCommand,
} from '../../../domain/exchange/decide/chain/release.ts'
import { type Decider, decideOn } from '../../../domain/exchange/decide.ts'
import type { Inputs } from '../../../domain/exchange/inputs.ts'
import { violations } from '../../../domain/exchange/laws.ts'
import { createState, type ExchangeState } from '../../../domain/exchange/state.ts'
import { toStoredSpec } from '../../../domain/market/stored-spec.ts'
import type { MarketId, Millis, Seq } from '../../../domain/units.ts'
import { Releases } from '../../../keeper/engine/releases.ts'
import { perpetual } from '../../support/markets.ts'

const { marketId } = perpetual
const RELAYER = '0xrelayer'
const OWNER = `0x${'1'.repeat(40)}`
const INPUTS: Inputs = {
  now: 9_000 as Millis,
  report: () => null,
  session: () => null,
  reportRules: () => null,
  headTime: null,
  chainSeenAt: null,
  limits: { oracleMaxAgeMs: 0, chainMaxAgeMs: 0 },
}

function write(state: ExchangeState, shard: string, row: Entry['row']): void {
  const of = shard === 'accounts' ? 0 : marketId
  apply(state, { shard, seq: (state.heads.get(of as MarketId)?.seq ?? 0) + 1, row })
}

function take<Command, Answer>(
  state: ExchangeState,
  decider: Decider<Command, Answer, Command>,
  command: Command,
): { readonly answer: Answer; readonly steps: number } {
  for (let next = command, steps = 1; ; steps++) {
    const decision = decideOn<Command, Answer, Command>(state, INPUTS, { decider, command: next })
    for (const entry of decision.entries) apply(state, JSON.parse(JSON.stringify(entry)) as Entry)
    if (decision.next === null) return { answer: decision.answer, steps }
    next = decision.next
  }
}

const lane: Decider<LaneCommand, LaneAnswer, LaneCommand> = decideLane
const adjust: Decider<AdjustmentLaneCommand, AdjustmentLaneAnswer, AdjustmentLaneCommand> =
  decideAdjustmentLane
const relay: Decider<RelayLaneCommand, RelayLaneAnswer, RelayLaneCommand> = decideRelayLane
const release: Decider<ReleaseCommand, ReleaseAnswer, ReleaseCommand> = (draft, _, command) =>
  decideRelease(draft, command)

/** A market, an account with a prepared adjustment and a queued relay operation, and a lane. */
function opened(): ExchangeState {
  const state = createState()
  write(state, 'accounts', { kind: 'user_created', user_id: 1, address: OWNER, at: 1 })
  const balance = { kind: 'balance_changed', cause: 'deposit', rollback: false, user_id: 1 } as const
  const mined = { block: 1, tx_hash: '0x1', log_index: 0, at: 1 }
  write(state, 'accounts', { ...balance, free_delta: '100', pending_withdrawal_delta: '0', ...mined })
  write(state, `m${marketId}`, { kind: 'market_listed', spec: toStoredSpec(perpetual) })
  write(state, `m${marketId}`, {
    kind: 'adjustment_changed',
    adjustment_id: 'adj',
    user_id: 1,
    adjustment: 'add_margin',
    status: 'PREPARED',
    amount: '7',
    new_leverage: null,
    tx_hash: null,
    failure_kind: null,
    failure_reason: null,
    reserved_delta: '7',
    created_at: 1,
    at: 1,
    request: {
      digest: '0xd',
      nonce: 1,
      request: {
        signer: OWNER,
        signature: '0x',
        deadline: 9,
        amount: '7',
        remove_mode: 'exact',
        min_amount: '0',
      },
      hold: '7',
      pays: '0',
      cancelled_orders: 0,
    },
  })
  write(state, 'accounts', {
    kind: 'relay_changed',
    operation_id: 'op',
    user_id: 1,
    operation: 'revoke_session_key',
    session_key: '0xkey',
    market_id: null,
    status: 'QUEUED',
    failure: null,
    tx_hash: null,
    at: 1,
    request: {
      owner: OWNER,
      target: '0xt',
      gas: 1,
      nonce: 0,
      deadline: 9,
      data: '0x',
      signature: '0x',
      minimum: null,
    },
  })
  take(state, lane, { kind: 'register_lane', relayer: RELAYER, chainId: 1, lane: 'x', firstNonce: 0 })
  take(state, lane, { kind: 'reserve_nonces', relayer: RELAYER, count: 6 })
  return state
}

const anySeen = fc.constantFrom('PREPARED' as const, 'SIGNED' as const, 'SUBMITTED' as const)
const anyStep = fc.oneof(
  fc.record({ act: fc.constant('sign' as const), nonce: fc.nat(7) }),
  fc.record({ act: fc.constant('noop' as const), nonce: fc.nat(7) }),
  fc.record({ act: fc.constant('submit' as const) }),
  fc.record({ act: fc.constant('fail' as const), seen: anySeen }),
  fc.record({ act: fc.constant('relay' as const), nonce: fc.nat(7) }),
  fc.record({ act: fc.constantFrom('refail' as const, 'requeue' as const), nonce: fc.option(fc.nat(7)) }),
)

type AnyStep = typeof anyStep extends fc.Arbitrary<infer Step> ? Step : never

describe('lanes of adjustments and relays in a state', () => {
  it('when workers sign, fill, fail and requeue in any order, each nonce has one transaction, and an attempt holds its amount while in flight', () => {
    fc.assert(
      fc.property(fc.array(anyStep, { maxLength: 40 }), (steps) => {
        const state = opened()
        const first = new Map<number, string>()
        const use = (nonce: number, hash: string): void => {
          expect(first.get(nonce) ?? hash, `nonce ${nonce} has one transaction`).to.equal(hash)
          first.set(nonce, hash)
        }
        const sign = (nonce: number, before: string): void => {
          const signature = {
            adjustmentId: 'adj',
            nonce,
            hash: `0xa${nonce}`,
            asOf: 5 as Millis,
            maxRemovable: null,
          }
          const { answer } = take(state, adjust, {
            kind: 'adjustments_signed',
            marketId,
            relayer: RELAYER,
            signatures: [signature],
          })
          if (answer.kind !== 'hashes' || answer.hashes.length === 0) return
          use(nonce, signature.hash)
          expect(state.attempts.need('adj')).to.include({
            tx_hash: signature.hash,
            relayer_nonce: nonce,
          })
          expect(['PREPARED', 'SIGNED', 'SUBMITTED']).to.include(before)
        }
        const play = (step: AnyStep): void => {
          const before = state.attempts.need('adj').status
          if (step.act === 'sign') {
            sign(step.nonce, before)
          } else if (step.act === 'noop') {
            const { nonce } = step
            const command = {
              kind: 'signed',
              marketId: null,
              queueNo: null,
              relayer: RELAYER,
              nonce,
              attempt: 1,
              hash: `0xn${nonce}`,
              purpose: 'nothing',
            } as const
            const { answer } = take(state, lane, command)
            if (answer.kind === 'hash') use(nonce, answer.hash)
            else expect(nonce, 'only a nonce that is not assigned is refused').to.be.at.least(6)
          } else if (step.act === 'submit') {
            take(state, adjust, { kind: 'adjustments_submitted', marketId, adjustmentIds: ['adj', 'other'] })
            expect(state.attempts.need('adj').status).to.equal(before === 'SIGNED' ? 'SUBMITTED' : before)
          } else if (step.act === 'fail') {
            const end = { status: 'ABORTED', failure: null, reason: 'late' } as const
            take(state, adjust, {
              kind: 'fail_adjustment',
              marketId,
              adjustmentId: 'adj',
              seen: step.seen,
              ...end,
            })
            const isKept = step.seen === 'PREPARED' && before !== 'PREPARED'
            expect(state.attempts.need('adj').status).to.equal(isKept ? before : 'ABORTED')
          } else if (step.act === 'relay') {
            const { nonce } = step
            const { answer } = take(state, relay, {
              kind: 'relay_signed',
              operationId: 'op',
              relayer: RELAYER,
              nonce,
              hash: `0xr${nonce}`,
            })
            if (answer.kind === 'done') use(nonce, `0xr${nonce}`)
          } else {
            const { status, relayer, relayer_nonce } = state.relays.need('op')
            const seen = { operationId: 'op', status, relayer, relayerNonce: step.nonce }
            const end = { failure: 'EXPIRED', reason: 'late' } as const
            const command: RelayLaneCommand =
              step.act === 'refail' ? { kind: 'fail_relay', seen, ...end } : { kind: 'requeue_relay', seen }
            const { answer } = take(state, relay, command)
            const isOpen = status === 'QUEUED' || status === 'RELAYING'
            expect(answer.kind).to.equal(isOpen && relayer_nonce === step.nonce ? 'done' : 'changed')
          }
        }
        for (const step of steps) {
          play(step)
          const { status, held } = state.attempts.need('adj')
          expect(held).to.equal(['PREPARED', 'SIGNED', 'SUBMITTED'].includes(status) ? '7' : '0')
          expect(violations(state)).to.deep.equal([])
        }
      }),
      { numRuns: 200 },
    )
  })

  it('when a signature that was accepted comes again, it is accepted again and has no row', () => {
    const state = opened()
    const signature = { adjustmentId: 'adj', nonce: 0, hash: '0xa', asOf: 5 as Millis, maxRemovable: null }
    const signed: AdjustmentLaneCommand = {
      kind: 'adjustments_signed',
      marketId,
      relayer: RELAYER,
      signatures: [signature],
    }
    const relayed: RelayLaneCommand = {
      kind: 'relay_signed',
      operationId: 'op',
      relayer: RELAYER,
      nonce: 1,
      hash: '0xr',
    }
    take(state, adjust, signed)
    take(state, relay, relayed)
    const rows = [...state.heads.rows()].map(({ seq }) => seq)
    expect(take(state, adjust, signed).answer).to.deep.equal({ kind: 'hashes', hashes: ['0xa'] })
    expect(take(state, relay, relayed).answer).to.deep.equal({ kind: 'done' })
    expect([...state.heads.rows()].map(({ seq }) => seq)).to.deep.equal(rows)
    const known = take(state, lane, { kind: 'signed_hashes', relayer: RELAYER, nonces: [0, 1, 2] }).answer
    expect(known).to.deep.equal({ kind: 'hashes', hashes: ['0xa', '0xr'] })
  })
})

describe('releases', () => {
  function requested(count: number): ExchangeState {
    const state = opened()
    const balance = { free: '0', reserved: '0', pending_withdrawal: '0', position_margin: '0' }
    for (let n = 0; n < count; n++)
      write(state, 'accounts', {
        kind: 'request_completed',
        user_id: 1,
        client_request_id: String(n),
        digest: '0x',
        results: [],
        balance,
        read_after: { market_id: 0, seq: 1 },
        at: 1,
      })
    return state
  }

  it('when more has ended than one step releases, the steps release all of it up to the row, and nothing behind it', () => {
    const count = MOST_RELEASED * 2 + 5
    const state = requested(count)
    const head = state.heads.need(0 as MarketId).seq
    const upTo = (head - 3) as Seq
    const { steps } = take(state, release, { kind: 'release_ended', marketId: 0 as MarketId, upTo })
    expect(steps).to.equal(3)
    expect(state.requests.size).to.equal(3)
    expect(state.heads.need(0 as MarketId).releasedUpTo).to.equal(upTo)
    const again = take(state, release, { kind: 'release_ended', marketId: 0 as MarketId, upTo })
    expect([again.steps, state.heads.need(0 as MarketId).seq]).to.deep.equal([1, head + 3])
  })

  it('when nonces are final, their transactions are released, except transactions of pending actions', () => {
    const state = opened()
    const noop = (nonce: number) =>
      take(state, lane, {
        kind: 'signed',
        marketId: null,
        queueNo: null,
        relayer: RELAYER,
        nonce,
        attempt: 1,
        hash: `0x${nonce}`,
        purpose: 'nothing',
      })
    for (const nonce of [0, 1, 2]) noop(nonce)
    take(state, release, { kind: 'release_transactions', relayer: RELAYER, below: 2 })
    expect([...state.transactions.rows()].map(({ nonce }) => nonce)).to.deep.equal([2])
    const head = [...state.heads.rows()].map(({ seq }) => seq)
    take(state, release, { kind: 'release_transactions', relayer: RELAYER, below: 2 })
    expect([...state.heads.rows()].map(({ seq }) => seq)).to.deep.equal(head)
  })

  it('when blocks can still be rolled back, or rows are young, nothing is released; then the heads before these blocks are', () => {
    const state = requested(2)
    const releases = new Releases({ sampleMs: 10, keepMs: 100 })
    const position = { next_block: 5, kept_from: 1, confirmed_to: 4, forked_at: null, begun_at: 0 }
    state.chain.put(position)
    const heads = [...state.heads.rows()].flatMap(({ marketId: of, seq }) =>
      of === 0 || of === marketId ? [{ kind: 'release_ended', marketId: of, upTo: seq }] : [],
    )
    expect(releases.poll(state, 1_000 as Millis)).to.deep.equal([])
    write(state, 'accounts', { kind: 'user_created', user_id: 2, address: `0x${'2'.repeat(40)}`, at: 2 })
    state.chain.put({ ...position, next_block: 9 })
    expect(releases.poll(state, 1_200 as Millis), 'blocks from 1 on are kept').to.deep.equal([])
    state.chain.put({ ...position, next_block: 9, kept_from: 5 })
    expect(releases.poll(state, 1_250 as Millis)).to.have.deep.members(heads)
    expect(releases.poll(state, 1_260 as Millis), 'once').to.deep.equal([])
  })
})
