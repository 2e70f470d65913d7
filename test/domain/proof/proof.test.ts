import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { clear } from '../../../domain/auction/auction.ts'
import type { Cleared } from '../../../domain/auction/clearing.ts'
import { statedSequence } from '../../../domain/proof/statement.ts'
import { type BatchProof, type MinedPart, verifyParts, verifyProof } from '../../../domain/proof/verify.ts'
import { digestOf, statementFrom } from '../../../domain/proof/wire.ts'
import type { BatchSettled } from '../../../domain/settlement/settlement.ts'
import type { Price, Quote, Ticks } from '../../../domain/units.ts'
import { anyBatch, toInput } from '../support/any-auction.ts'
import { bigBatch } from '../support/big-batch.ts'
import { leavesOf, type Path } from '../support/leaves.ts'
import { keccak, type ProvenBatch, provenBatch } from '../support/proven.ts'

const anyCleared: fc.Arbitrary<Cleared> = anyBatch({ minOrders: 5 })
  .map((batch) => clear(toInput(batch)))
  .filter((clearing) => clearing.outcome === 'cleared')

const problems = (proof: BatchProof, { mined }: ProvenBatch): string[] => {
  const found = verifyProof(proof, keccak)
  return found.length > 0 ? found : verifyParts(proof, mined, keccak)
}

/** Another value of the same type. */
function changed(value: unknown): unknown {
  if (typeof value === 'number') return value + 1
  if (typeof value === 'boolean') return !value
  if (value === null) return 1
  const text = String(value)
  return `${text.slice(0, -1)}${text.endsWith('1') ? '2' : '1'}`
}

function withChange<T>(value: T, [name, ...rest]: Path): T {
  if (name === undefined) return changed(value) as T
  const copy = (Array.isArray(value) ? [...value] : { ...value }) as Record<string | number, unknown>
  copy[name] = withChange(copy[name], rest)
  return copy as T
}

const genericPath = (path: Path): string =>
  path.map((name) => (typeof name === 'number' ? '[]' : name)).join('.')

describe('the proof of a batch', () => {
  it('when any batch clears, its proof holds, and states the result of the auction over the whole book', () => {
    fc.assert(
      fc.property(anyCleared, (clearing) => {
        const proven = provenBatch(clearing)
        expect(problems(proven.proof, proven)).to.deep.equal([])
        const { result } = statementFrom(proven.proof.statement)
        const seqs = statedSequence(clearing.inputs).map(({ seq }) => seq)
        const { price, rule, volume, demand, supply, lo, hi } = clearing
        expect(result).to.include({ price, rule, volume, demand, supply, lo, hi })
        const bySeq = clearing.fills.toSorted((a, b) => a.seq - b.seq)
        expect(result.fills.map(({ order, ...fill }) => ({ seq: seqs[order - 1], ...fill }))).to.deep.equal(
          bySeq.map(
            // Unused steps are stated with the order.
            ({
              account: _,
              side: __,
              unused: ___,
              fill: steps,
              taker: takerSteps,
              maker: makerSteps,
              ...fill
            }) => ({
              ...fill,
              steps,
              takerSteps,
              makerSteps,
            }),
          ),
        )
        expect(
          result.pairs.map(({ buy, sell, steps }) => [seqs[buy - 1], seqs[sell - 1], steps]),
        ).to.deep.equal(clearing.pairs.map(({ buySeq, sellSeq, steps }) => [buySeq, sellSeq, steps]))
        expect(result.cancels.map(({ order, reason }) => ({ seq: seqs[order - 1], reason }))).to.deep.equal(
          clearing.cancels,
        )
        expect(
          result.protections.map(({ order, ...rest }) => ({ seq: seqs[order - 1], ...rest })),
        ).to.deep.equal(clearing.protections)
      }),
      { numRuns: 300 },
    )
  })

  it('when any single field of a proof is changed, it is refused', () => {
    fc.assert(
      fc.property(anyCleared, (clearing) => {
        const proven = provenBatch(clearing)
        for (const path of leavesOf(proven.proof))
          expect(problems(withChange(proven.proof, path), proven), genericPath(path)).to.not.deep.equal([])
      }),
      { numRuns: 20 },
    )
  })

  it('when a batch fills more orders than one transaction settles, its proof holds with any number of its parts settled', () => {
    const clearing = clear(
      toInput(bigBatch({ seed: 3, orders: 1_500, accounts: 300, holders: 40 })),
    ) as Cleared
    const { length } = provenBatch(clearing).proof.parts
    expect(length).to.be.above(1)
    for (let settled = 0; settled <= length; settled++) {
      const proven = provenBatch(clearing, settled)
      expect(proven.proof.status).to.equal(settled === length ? 'SETTLED' : 'SETTLING')
      expect(problems(proven.proof, proven)).to.deep.equal([])
    }
  })

  it('when a settlement differs from the statement, the difference is named', () => {
    const clearing = clear(toInput(bigBatch({ seed: 5, orders: 40, accounts: 20, holders: 10 }))) as Cleared
    const { proof, mined } = provenBatch(clearing)
    const [hash, settlement] = [...mined][0] as [string, MinedPart]
    const found = (change: Partial<MinedPart>) =>
      verifyParts(proof, new Map([[hash, { ...settlement, ...change }]]), keccak).join('\n')
    const { sent } = settlement
    const settled = settlement.settled as BatchSettled
    const [first, ...rest] = settled.fills as [BatchSettled['fills'][number]]
    const withFee = (fee: bigint, isFeeCapped: boolean) => ({
      settled: { ...settled, fills: [{ ...first, fee: fee as Quote, isFeeCapped }, ...rest] },
    })
    expect(found({})).to.equal('')
    expect(found({ chainId: 1 })).to.contain('part 1.chain_id')
    expect(found({ settled: null })).to.contain('reverted')
    expect(found({ sent: { ...sent, price: (sent.price + 1) as Ticks } })).to.contain('part 1.price')
    expect(found({ sent: { ...sent, fills: sent.fills.slice(1) } })).to.contain('part 1, fills')
    expect(found(withFee(first.fee + 1n, false))).to.contain('charged')
    expect(found(withFee(first.fee + 1n, true))).to.contain('charged')
    expect(found(withFee(0n, true))).to.equal('')
  })

  it('when a call repeats the report of the action before it, it may omit the signatures, and not replace them', () => {
    const clearing = clear(toInput(bigBatch({ seed: 5, orders: 40, accounts: 20, holders: 10 }))) as Cleared
    const { proof, mined } = provenBatch(clearing)
    const [hash, settlement] = [...mined][0] as [string, MinedPart]
    const { sent } = settlement
    const found = (oracle: Partial<typeof sent.oracle>) => {
      const changed = { ...settlement, sent: { ...sent, oracle: { ...sent.oracle, ...oracle } } }
      return verifyParts(proof, new Map([[hash, changed]]), keccak).join('\n')
    }
    expect(found({ signatures: '0x' })).to.equal('')
    expect(found({ signatures: `0x${'cd'.repeat(65)}` })).to.contain('part 1.oracle.signatures')
    expect(found({ signatures: '0x', price: (sent.oracle.price + 1n) as Price })).to.contain(
      'part 1.oracle.price',
    )
  })

  it('when the exchange settles another order than the statement opens, the difference is named', () => {
    const clearing = clear(toInput(bigBatch({ seed: 5, orders: 40, accounts: 20, holders: 10 }))) as Cleared
    const { proof } = provenBatch(clearing)
    const other = provenBatch({
      ...clearing,
      inputs: {
        ...clearing.inputs,
        orders: clearing.inputs.orders.map((order) => ({ ...order, triggered: true })),
      },
    })
    expect(verifyParts(proof, other.mined, keccak)).to.not.deep.equal([])
  })

  it('when a field of the result is changed and the digest adjusted to it, the proof is refused', () => {
    fc.assert(
      fc.property(anyCleared, (clearing) => {
        const { proof } = provenBatch(clearing)
        const { result } = proof.statement as { result: unknown }
        for (const path of leavesOf(result)) {
          const statement = withChange(proof.statement, ['result', ...path])
          const forged = { ...proof, statement, digest: digestOf(statement, keccak) }
          expect(verifyProof(forged, keccak), genericPath(path)).to.not.deep.equal([])
        }
      }),
      { numRuns: 20 },
    )
  })
})
