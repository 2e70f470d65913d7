/** Laws of the chain's side of `decide`: blocks that are applied in slices, repeated, reordered and rolled back. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { ChainFact, LoggedFact } from '../../../domain/chain/facts.ts'
import { apply, type Entry } from '../../../domain/exchange/apply.ts'
import { load, serialize } from '../../../domain/exchange/checkpoint.ts'
import {
  type BlockCommand,
  type ChainAnswer,
  type ChainCommand,
  type ChainRules,
  decideChain,
  isChainHalted,
} from '../../../domain/exchange/decide/chain/blocks.ts'
import { decideOn } from '../../../domain/exchange/decide.ts'
import { canonicalJson } from '../../../domain/exchange/document-table.ts'
import type { Inputs } from '../../../domain/exchange/inputs.ts'
import { createState, digestOf, type ExchangeState, tablesOf } from '../../../domain/exchange/state.ts'
import { toHex } from '../../../domain/hex.ts'
import { CHAIN_SHARD } from '../../../domain/journal/journal-row.ts'
import { toStoredSpec } from '../../../domain/market/stored-spec.ts'
import type { Address, Millis } from '../../../domain/units.ts'
import { perpetual } from '../../support/markets.ts'

const ACCOUNTS = 3
const addressOf = (account: number): Address => `0x${String(account).repeat(40)}` as Address

const anyFact: fc.Arbitrary<ChainFact> = fc.oneof(
  fc.record({ account: fc.nat(ACCOUNTS - 1), amount: fc.bigInt(1n, 1_000n) }).map(
    ({ account, amount }): ChainFact => ({
      kind: 'ledger_moved',
      cause: 'deposit',
      account: addressOf(account),
      freeDelta: amount,
      pendingDelta: 0n,
    }),
  ),
  fc.record({ account: fc.nat(ACCOUNTS - 1), amount: fc.bigInt(1n, 1_000n) }).map(
    ({ account, amount }): ChainFact => ({
      kind: 'ledger_moved',
      cause: 'withdrawal_request',
      account: addressOf(account),
      freeDelta: -amount,
      pendingDelta: amount,
    }),
  ),
  fc.record({ owner: fc.nat(ACCOUNTS - 1), key: fc.nat(1), isRevoked: fc.boolean(), at: fc.nat(100) }).map(
    ({ owner, key, isRevoked, at }): ChainFact => ({
      kind: 'session_key_updated',
      owner: addressOf(owner),
      key: addressOf(7 + key),
      change: isRevoked ? { revoked_at: at } : { permissions: 3, registered_at: at, expires_at: at + 100 },
    }),
  ),
  fc.record({ signer: fc.nat(ACCOUNTS - 1), nonce: fc.nat(5), success: fc.boolean() }).map(
    ({ signer, nonce, success }): ChainFact => ({
      kind: 'forward_request_executed',
      signer: addressOf(signer),
      nonce,
      success,
    }),
  ),
  fc.record({ account: fc.nat(ACCOUNTS - 1), minimum: fc.bigInt(1n, 9n) }).map(
    ({ account, minimum }): ChainFact => ({
      kind: 'margin_nonces_invalidated',
      spec: perpetual,
      account: addressOf(account),
      minimum,
    }),
  ),
  fc
    .option(fc.nat(1_000), { nil: null })
    .map((endsAt): ChainFact => ({ kind: 'bank_pause_changed', endsAt })),
  fc
    .record({ expires_at: fc.nat(9), dispute_window: fc.nat(9) })
    .map((times): ChainFact => ({ kind: 'ending_changed', spec: perpetual, times })),
  fc.constant<ChainFact>({ kind: 'undecodable', spec: perpetual, problem: 'no event' }),
  fc.constant<ChainFact>({ kind: 'ignored', event: 'Approval' }),
)

const anyBlocks = fc.array(fc.array(anyFact, { maxLength: 6 }), { minLength: 1, maxLength: 6 })

const RULES: ChainRules = { confirmations: 2, depth: 100, sliceAccounts: 1_000, emptyBlocksMs: 0 }
const INPUTS: Inputs = {
  now: 5_000 as Millis,
  report: () => null,
  session: () => null,
  reportRules: () => null,
  headTime: null,
  chainSeenAt: null,
  limits: { oracleMaxAgeMs: 0, chainMaxAgeMs: 0 },
}

function listed(): ExchangeState {
  const state = createState()
  apply(state, {
    shard: `m${perpetual.marketId}`,
    seq: 1,
    row: { kind: 'market_listed', spec: toStoredSpec(perpetual) },
  })
  return state
}

/** Decides the command to its end and applies its rows, in slices. */
function play(
  state: ExchangeState,
  command: ChainCommand,
  rules = RULES,
): { rows: Entry[]; answer: ChainAnswer } {
  const rows: Entry[] = []
  for (let next = command; ; ) {
    const before = toHex(digestOf(state))
    const decision = decideOn<ChainCommand, ChainAnswer, ChainCommand>(state, INPUTS, {
      decider: (draft, inputs, wanted) => decideChain(rules, draft, inputs, wanted),
      command: next,
    })
    expect(toHex(digestOf(state)), 'a decision changes nothing').to.equal(before)
    for (const entry of decision.entries) {
      const stored = JSON.parse(JSON.stringify(entry)) as Entry
      apply(state, stored)
      rows.push(stored)
    }
    if (decision.next === null) return { rows, answer: decision.answer }
    next = decision.next
  }
}

const factsOf = (facts: readonly ChainFact[]): LoggedFact[] =>
  facts.map((fact, logIndex) => ({ log: { logIndex, txHash: '0xabc', address: addressOf(9) }, fact }))

const blockOf = (facts: readonly ChainFact[], number: number, fork = 'a'): BlockCommand => ({
  kind: 'apply_block',
  block: {
    number,
    hash: `${fork}${number}`,
    parentHash: number === 1 ? '' : `${fork}${number - 1}`,
    timestamp: number,
  },
  from: number,
  facts: factsOf(facts),
  silent: [],
  positions: [],
  gasUsed: new Map(),
})

const playAll = (state: ExchangeState, blocks: readonly (readonly ChainFact[])[], rules = RULES): Entry[] =>
  blocks.flatMap((facts, at) => play(state, blockOf(facts, at + 1), rules).rows)

/** Documents may have their fields in any order. */
const textOf = (row: object): string =>
  canonicalJson(
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => [name, typeof value === 'bigint' ? `${value}` : value]),
    ),
  )

/** Every table but the sequences of the journals, and the users and restrictions that no rollback takes back. */
function effectsOf(state: ExchangeState): Record<string, string[]> {
  const left = new Set(['heads', 'users', 'markets'])
  return Object.fromEntries(
    tablesOf(state)
      .filter(({ name }) => !left.has(name))
      .map((table) => {
        const rows = [...(table as unknown as { rows(): Iterable<object> }).rows()]
        const texts = rows.map(textOf)
        return [table.name, texts.sort()]
      }),
  )
}

const withoutSlices = (rows: readonly Entry[]): unknown[] =>
  rows
    .filter(({ row }) => row.kind !== 'block_advanced')
    .map(({ shard, row }) => (shard === CHAIN_SHARD ? row : { shard, row }))

describe('blocks of the chain in a state', () => {
  it('when blocks are rolled back and applied again, the state equals one to which they were applied once', () => {
    fc.assert(
      fc.property(anyBlocks, fc.nat(6), fc.integer({ min: 1, max: 9 }), (blocks, kept, sliceAccounts) => {
        const once = listed()
        playAll(once, blocks)
        const state = listed()
        playAll(state, blocks)
        const above = Math.min(kept, blocks.length)
        play(state, { kind: 'roll_back', above }, { ...RULES, sliceAccounts })
        expect(state.blockFacts.size).to.equal(
          [...once.blockFacts.rows()].filter(({ block }) => block <= above).length,
        )
        for (let at = above; at < blocks.length; at++)
          expect(play(state, blockOf(blocks[at] as ChainFact[], at + 1)).answer.kind).to.equal('done')
        expect(effectsOf(state)).to.deep.equal(effectsOf(once))
      }),
      { numRuns: 100 },
    )
  })

  it('when all blocks are rolled back, balances, keys, nonces and times equal the values before these blocks', () => {
    fc.assert(
      fc.property(anyBlocks, (blocks) => {
        const state = listed()
        playAll(state, blocks)
        play(state, { kind: 'roll_back', above: 0 })
        const { chain: _, accounts, bank, ...effects } = effectsOf(state)
        for (const row of accounts as string[])
          expect(JSON.parse(row)).to.deep.include({ free: '0', pendingWithdrawal: '0', reserved: '0' })
        expect((bank as string[]).filter((row) => !row.includes(':0}'))).to.deep.equal([])
        const { chain: __, accounts: ___, bank: ____, ...untouched } = effectsOf(listed())
        expect(effects).to.deep.equal(untouched)
        const { expires_at, dispute_window } = state.markets.need(String(perpetual.marketId))
        const before = listed().markets.need(String(perpetual.marketId))
        expect({ expires_at, dispute_window }).to.deep.equal({
          expires_at: before.expires_at,
          dispute_window: before.dispute_window,
        })
      }),
      { numRuns: 100 },
    )
  })

  it('when blocks are applied in slices of any size or their facts come in another order, the rows of markets and accounts are the same', () => {
    fc.assert(
      fc.property(anyBlocks, fc.integer({ min: 1, max: 9 }), (blocks, sliceAccounts) => {
        const whole = playAll(listed(), blocks)
        const state = listed()
        const sliced = blocks.flatMap((facts, at) => {
          const command = blockOf(facts, at + 1)
          return play(state, { ...command, facts: command.facts.toReversed() }, { ...RULES, sliceAccounts })
            .rows
        })
        // A mismatch restricts its market at the end of its slice.
        const ofMarkets = (rows: readonly Entry[]) =>
          Map.groupBy(
            rows
              .filter(({ shard, row }) => shard !== CHAIN_SHARD && row.kind !== 'market_restricted')
              .map(({ shard, row }) => ({ shard, row })),
            ({ shard }) => shard,
          )
        expect(ofMarkets(sliced)).to.deep.equal(ofMarkets(whole))
        expect(new Set(withoutSlices(sliced).map((row) => JSON.stringify(row)))).to.deep.equal(
          new Set(withoutSlices(whole).map((row) => JSON.stringify(row))),
        )
      }),
      { numRuns: 100 },
    )
  })

  it('when a block comes again, or does not follow the newest one, it changes nothing', () => {
    fc.assert(
      fc.property(anyBlocks, fc.nat(5), (blocks, pick) => {
        const state = listed()
        playAll(state, blocks)
        const number = (pick % blocks.length) + 1
        const again = play(state, blockOf(blocks[number - 1] as ChainFact[], number))
        expect(again).to.deep.equal({ rows: [], answer: { kind: 'not_next', nextBlock: blocks.length + 1 } })
        const other = play(state, blockOf([], blocks.length + 1, 'b'))
        expect(other).to.deep.equal({ rows: [], answer: { kind: 'fork', tip: blocks.length } })
      }),
      { numRuns: 50 },
    )
  })

  it('when an owner ends between two slices, the next one continues at the log index from a checkpoint', () => {
    fc.assert(
      fc.property(anyBlocks, (blocks) => {
        const once = listed()
        playAll(once, blocks)
        let state = listed()
        for (const [at, facts] of blocks.entries()) {
          for (let slices = 0; slices < 50; slices++) {
            const decision = decideOn<ChainCommand, ChainAnswer, ChainCommand>(state, INPUTS, {
              decider: (draft, inputs, command) =>
                decideChain({ ...RULES, sliceAccounts: 1 }, draft, inputs, command),
              command: blockOf(facts, at + 1),
            })
            for (const entry of decision.entries) apply(state, JSON.parse(JSON.stringify(entry)) as Entry)
            state = load(serialize(state))
            if (decision.next === null) break
          }
        }
        expect(effectsOf(state)).to.deep.equal(effectsOf(once))
      }),
      { numRuns: 30 },
    )
  })

  it('when the chain forks below the blocks that are kept, it halts; blocks before are forgotten once they are confirmed', () => {
    fc.assert(
      fc.property(anyBlocks, fc.integer({ min: 2, max: 4 }), (blocks, depth) => {
        const rules = { ...RULES, depth }
        const state = listed()
        for (const [at, facts] of blocks.entries()) {
          play(state, blockOf(facts, at + 1), rules)
          play(state, { kind: 'confirm_blocks', number: at + 1, timestamp: at + 1 }, rules)
        }
        expect(state.blocks.size).to.be.at.most(depth)
        const keptFrom = Math.max(1, blocks.length - depth + 1)
        const { answer } = play(state, { kind: 'roll_back', above: keptFrom - 2 }, rules)
        expect(answer).to.deep.equal({ kind: 'fork_too_deep', keptFrom })
        expect(isChainHalted(state)).to.equal(true)
        expect(play(state, { kind: 'roll_back', above: keptFrom - 2 }, rules).rows).to.deep.equal([])
      }),
      { numRuns: 50 },
    )
  })
})
