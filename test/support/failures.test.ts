import { expect } from 'chai'
import { failuresIn } from './failures.ts'

const numbered = (count: number): string[] => Array.from({ length: count }, (_, line) => `line ${line}`)

describe('test/support/failures', () => {
  it('when tests failed, it returns what follows their number', () => {
    const report = ['  1 failing', '', '  1) a title:', '     AssertionError: expected 1 to equal 2']
    expect(failuresIn(['    ✔ 2 failing ships', '  3 passing (1s)', ...report])).to.deep.equal(report)
  })

  it('when the report of the failures is long, it returns its first 80 lines', () => {
    expect(failuresIn(['  9 failing', ...numbered(100)])).to.deep.equal(['  9 failing', ...numbered(79)])
  })

  it('when the process ended before the reporter, it returns the last 80 lines', () => {
    expect(failuresIn(numbered(100))).to.deep.equal(numbered(100).slice(20))
  })
})
