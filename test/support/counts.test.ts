import { expect } from 'chai'
import { addCounts, closingLine, countsOf, NONE } from './counts.ts'

const summed = (output: string): string =>
  closingLine(output.split('\n').map(countsOf).reduce(addCounts, NONE))

describe('test/support/counts', () => {
  it('when mocha prints its closing lines, it adds up passed, failed and skipped tests', () => {
    expect(summed('  12 passing (3s)\n  1 pending\n  2 failing')).to.equal('12 passed, 2 failed, 1 skipped')
  })

  it('when Hardhat prints its closing lines, it adds the Solidity tests and counts no test twice', () => {
    const output =
      '  1 passing (2ms)\n  1 failing\n\n3 passing (2 solidity, 1 mocha)\n2 failing (1 solidity, 1 mocha)'
    expect(summed(output)).to.equal('3 passed, 2 failed')
  })

  it('when another line contains a number, it counts nothing', () => {
    expect(summed('    ✔ 3 passing ships\n1 passing (1 mocha)\n    4 passing')).to.equal('0 passed, 0 failed')
  })
})
