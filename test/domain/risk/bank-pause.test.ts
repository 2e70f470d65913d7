import { expect } from 'chai'
import { describe, it } from 'mocha'
import { graceEndsAt, isPastGrace } from '../../../domain/risk/bank-pause.ts'
import type { Millis, Seconds } from '../../../domain/units.ts'

const ENDS_AT = 1_700_000_000 as Seconds
const GRACE_END = 1_700_000_600_000 as Millis
const EQUITY = 1n

describe('liquidations after a pause of the bank', () => {
  it('when a pause has ended, the grace ends ten minutes later', () => {
    expect(graceEndsAt(ENDS_AT)).to.equal(GRACE_END)
  })

  it('when the account has equity, it may be liquidated from the end of the grace on, not a millisecond earlier', () => {
    expect(isPastGrace(ENDS_AT, (GRACE_END - 1) as Millis, EQUITY)).to.equal(false)
    expect(isPastGrace(ENDS_AT, GRACE_END, EQUITY)).to.equal(true)
  })

  it('when the account has no equity, it may be liquidated at any time', () => {
    for (const equity of [0n, -1n])
      expect(isPastGrace(ENDS_AT, (ENDS_AT * 1000) as Millis, equity)).to.equal(true)
  })

  it('when the bank was never paused, any account may be liquidated', () => {
    expect(isPastGrace(0 as Seconds, GRACE_END, EQUITY)).to.equal(true)
  })
})
