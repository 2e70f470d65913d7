/** The tests of the Python client that need no exchange. Those that trade run with `test/e2e/programs.test.ts`. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { skipBecause } from '../e2e/support/guide.ts'
import { findPython, MISSING_PYTHON, runUnittest } from './python.ts'

describe('the Python client', function () {
  this.timeout(120_000)

  it('when its tests run, every implementation signs the published vectors, and lost answers are retried safely', async function () {
    const python = findPython()
    if (python === undefined) return skipBecause(this, MISSING_PYTHON)
    const { code, output } = await runUnittest(python, ['discover', '-s', 'tests', '-t', '.'])
    expect(code, output).to.equal(0)
    expect(output).to.match(/Ran \d\d tests/)
  })
})
