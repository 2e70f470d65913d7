/** A quorum of signers, of which some are at fault: the reports keep flowing, and the fault is counted. */
import { expect } from 'chai'
import { id } from 'ethers'
import { beforeEach, describe, it } from 'mocha'
import { rangeOf } from '../../../domain/prices/feed.ts'
import { reportHasher, signerOf } from '../../../domain/prices/report-hash.ts'
import type { SigningRules } from '../../../domain/prices/signing.ts'
import type { Millis } from '../../../domain/units.ts'
import type { ReportSigner } from '../../../keeper/ports.ts'
import { createQuorum } from '../../../keeper/prices/quorum.ts'
import type { SignerSet } from '../../../keeper/prices/signer-sets.ts'
import { keccak, recover } from '../../../service/crypto.ts'
import { plainKey } from '../../../service/keys/key-source.ts'
import { createReportKey, type SigningAnswer, type SigningRequest } from '../../../service/report-key.ts'
import { e18, perpetual } from '../../support/markets.ts'
import { SILENT_LOGGER } from '../support/market-fixture.ts'
import { FEED_ID, ORACLE } from './publisher-fixture.ts'

const NOW = 1_800_000_000_000 as Millis
const RULES: SigningRules = {
  range: rangeOf(perpetual, 'index'),
  maxAge: 5_000 as Millis,
  maxAhead: 2_000 as Millis,
  move: { kind: 'perpetual', moveBase: 100_000n, moveSlope: 20_000n, moveWindow: 1_000 as Millis },
}
const digestOf = reportHasher(ORACLE, keccak)
const OTHER_FEED = `0x${'0'.repeat(63)}2` as const

const never = new Promise<never>(() => {})

describe('the quorum of signers', () => {
  let clock: { value: number; now(): Millis }
  let faults: [string, string][]

  beforeEach(() => {
    clock = {
      value: NOW,
      now() {
        return this.value as Millis
      },
    }
    faults = []
    accepted = (signers, threshold) => ({
      signers: new Set(signers.map(({ address }) => address)),
      threshold,
    })
  })

  /** A signer that is its key. `aheadMs`: of its clock. */
  function honest(name: string, aheadMs = 0): ReportSigner {
    const key = createReportKey({
      key: plainKey(id(name)),
      domain: ORACLE,
      rulesOf: () => RULES,
      clock: { now: () => (clock.value + aheadMs) as Millis },
      after: 0 as Millis,
    })
    return { name, address: key.address, sign: async (requests) => key.sign(requests) }
  }
  const faulty = (name: string, sign: ReportSigner['sign']): ReportSigner => ({ ...honest(name), sign })

  const quorumOf = (signers: readonly ReportSigner[], threshold = 2) =>
    createQuorum({
      ...{
        signers,
        setOf: () => accepted(signers, threshold),
        digestOf,
        recover,
        clock,
        deadlineMs: 60,
        logger: SILENT_LOGGER,
      },
      metrics: { signerFault: (signer, fault) => faults.push([signer, fault]) },
    })
  /** An oracle that accepts all signers, unless a test says otherwise. */
  let accepted: (signers: readonly ReportSigner[], threshold: number) => SignerSet | null
  const request = (price = '100', feedId: SigningRequest['feedId'] = FEED_ID): SigningRequest => ({
    feedId,
    reading: { price: e18(price), observedAt: clock.now() },
  })

  async function proofOf(signers: readonly ReportSigner[], asked = request()) {
    const [outcome] = await quorumOf(signers).collect([asked])
    if (outcome === undefined || outcome.proof === null) return outcome?.reason
    const digest = digestOf(asked.feedId, asked.reading).slice()
    return (outcome.proof.slice(2).match(/.{130}/g) ?? []).map((one) => signerOf(digest, `0x${one}`, recover))
  }
  const sorted = (...signers: readonly ReportSigner[]) => signers.map(({ address }) => address).sort()

  it('when two of two sign, the proof has both signatures in ascending order of the addresses', async () => {
    const [a, b] = [honest('a'), honest('b')]
    expect(await proofOf([a, b])).to.deep.equal(sorted(a, b))
    expect(await proofOf([b, a], request('100.1', OTHER_FEED))).to.deep.equal(sorted(a, b))
  })

  const cases: readonly (readonly [string, (name: string) => ReportSigner, string])[] = [
    ['signs nothing', (name) => faulty(name, async () => []), 'NO_ANSWER'],
    [
      'signs with another key',
      (name) => faulty(name, (requests) => honest('another').sign(requests, 0)),
      'WRONG_SIGNATURE',
    ],
    [
      'signs another price',
      (name) => faulty(name, () => honest(name).sign([request('101')], 0)),
      'WRONG_SIGNATURE',
    ],
    ['answers with noise', (name) => faulty(name, async () => [{ signature: '0xnoise' }]), 'WRONG_SIGNATURE'],
    ['is unreachable', (name) => faulty(name, () => Promise.reject(new Error('refused'))), 'UNREACHABLE'],
    ['has a clock that is behind', (name) => honest(name, -2_001), 'FUTURE'],
    ['has a clock that is ahead', (name) => honest(name, 5_001), 'STALE'],
  ]
  for (const [what, make, fault] of cases) {
    it(`when one of three signers ${what}, the two other signers make the proof, and a single signer makes none`, async () => {
      const [a, b, bad] = [honest('a'), honest('b'), make('c')]
      expect(await proofOf([bad, a, b])).to.deep.equal(sorted(a, b))
      expect(await proofOf([bad, make('d'), honest('e')])).to.equal('NO_QUORUM')
      expect(faults).to.deep.include(['c', fault])
    })
  }

  it('when one signer is asked under two names, its signature counts once', async () => {
    const [a, b] = [honest('a'), honest('b')]
    expect(await proofOf([a, { ...a, name: 'again' }])).to.equal('NO_QUORUM')
    expect(faults).to.deep.equal([['again', 'DUPLICATE']])
    clock.value++
    expect(await proofOf([a, { ...a, name: 'again' }, b])).to.deep.equal(sorted(a, b))
  })

  it('when one signer never answers, it does not delay a proof, and reports that lack it are given up at the deadline', async () => {
    const [a, b, silent] = [honest('a'), honest('b'), faulty('silent', () => never)]
    expect(await proofOf([silent, a, b])).to.deep.equal(sorted(a, b))
    // The deadline has not passed.
    expect(faults).to.deep.equal([])
    expect(await proofOf([silent, a])).to.equal('NO_QUORUM')
    expect(faults).to.deep.equal([['silent', 'LATE']])
  })

  it('when a signer was late, it is not asked for a second, so that it does not delay what other signers refuse', async () => {
    let asked = 0
    const silent = faulty('silent', () => {
      asked++
      return never
    })
    const quorum = quorumOf([honest('a'), honest('b'), silent])
    await quorum.collect([request()])
    clock.value += 200
    // The wild price needs the third signer, which is late.
    expect(await quorum.collect([request('500')])).to.deep.equal([{ proof: null, reason: 'MOVE_TOO_LARGE' }])
    expect(asked).to.equal(2)
    clock.value += 200
    await quorum.collect([request()])
    expect(asked).to.equal(2)
    clock.value += 1_000
    await quorum.collect([request()])
    expect(asked).to.equal(3)
  })

  it('when a single signer refuses a move and another one is late, the report lacks a quorum and the feed is not halted', async () => {
    const liar = faulty('liar', async (requests) => requests.map(() => ({ refusal: 'MOVE_TOO_LARGE' })))
    const silent = faulty('silent', () => never)
    expect(await proofOf([honest('a'), liar, silent])).to.equal('NO_QUORUM')
    expect(await proofOf([honest('a'), liar, { ...liar, name: 'again' }, silent])).to.equal('NO_QUORUM')
  })

  it('when the oracle accepts only some of the signers, or needs more signatures than configured, the proof is as it needs', async () => {
    const [a, b, c] = [honest('a'), honest('b'), honest('c')]
    accepted = () => ({ signers: new Set([b.address, c.address]), threshold: 2 })
    expect(await proofOf([a, b, c])).to.deep.equal(sorted(b, c))
    expect(faults).to.deep.equal([['a', 'NOT_A_SIGNER']])
    clock.value++
    accepted = () => ({ signers: new Set([a.address, b.address, c.address]), threshold: 3 })
    expect(await proofOf([a, b, c])).to.deep.equal(sorted(a, b, c))
    clock.value++
    accepted = () => ({ signers: new Set([a.address]), threshold: 2 })
    expect(await proofOf([a, b, c])).to.equal('NO_QUORUM')
  })

  it('when what the oracle accepts is not known, no signer is asked', async () => {
    accepted = () => null
    let asked = 0
    const signer = faulty('a', async () => {
      asked++
      return []
    })
    expect(await proofOf([signer, honest('b')])).to.equal('NO_QUORUM')
    expect(asked).to.equal(0)
  })

  it('when some reports of a request are refused, all other reports have their proofs', async () => {
    const quorum = quorumOf([honest('a'), honest('b')])
    await quorum.collect([request('100'), request('100', OTHER_FEED)])
    clock.value += 500
    const outcomes = await quorum.collect([request('500'), request('100.1', OTHER_FEED)])
    expect(outcomes[0]).to.deep.equal({ proof: null, reason: 'MOVE_TOO_LARGE' })
    expect(outcomes[1]?.proof).to.have.length(2 + 2 * 130)
  })

  it('when signers are asked for two prices of one time, they sign the first one only', async () => {
    const signers = [honest('a'), honest('b')]
    expect(await proofOf(signers, request('100'))).to.be.an('array')
    expect(await proofOf(signers, request('100'))).to.be.an('array')
    expect(await proofOf(signers, request('100.1'))).to.equal('NO_QUORUM')
    expect(faults.map(([, fault]) => fault)).to.deep.equal(['CONFLICT', 'CONFLICT'])
  })

  it('when an answer comes after the deadline, it changes nothing', async () => {
    let answerLate: (answers: SigningAnswer[]) => void = () => {}
    const late = faulty('late', () => new Promise((resolve) => (answerLate = resolve)))
    const quorum = quorumOf([honest('a'), late])
    expect(await quorum.collect([request()])).to.deep.equal([{ proof: null, reason: 'NO_QUORUM' }])
    answerLate([{ signature: '0x' }])
    await new Promise((resolve) => setTimeout(resolve, 5))
    expect(faults).to.deep.equal([['late', 'LATE']])
  })
})
