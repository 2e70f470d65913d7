import { expect } from 'chai'
import { addCounts, closingLine, countsOf, NONE } from './counts.ts'

const summed = (output: string): string =>
  closingLine(output.split('\n').map(countsOf).reduce(addCounts, NONE))

describe('test/support/counts', () => {
  it('reads what mocha closes with', () => {
    expect(summed('  12 passing (3s)\n  1 pending\n  2 failing')).to.equal('12 passed, 2 failed, 1 skipped')
  })

  it('given a run of Hardhat, it adds the Solidity tests and counts none twice', () => {
    const output =
      '  1 passing (2ms)\n  1 failing\n\n3 passing (2 solidity, 1 mocha)\n2 failing (1 solidity, 1 mocha)'
    expect(summed(output)).to.equal('3 passed, 2 failed')
  })

  it('takes nothing else for a count', () => {
    expect(summed('    ✔ 3 passing ships\n1 passing (1 mocha)\n    4 passing')).to.equal('0 passed, 0 failed')
  })
})
