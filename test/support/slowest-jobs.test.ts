import { expect } from 'chai'
import { slowestJobs } from './slowest-jobs.ts'

describe('test/support/slowest-jobs', () => {
  it('when more than ten jobs have ended, it lists the ten longest in descending order', () => {
    const jobs = Array.from({ length: 12 }, (_, at) => ({ name: `job ${at}`, wallS: at, processorS: at / 2 }))
    const [heading, ...rows] = slowestJobs(jobs)
    expect(heading).to.equal('wall s  processor s  job')
    expect(rows).to.have.length(10)
    expect(rows[0]).to.equal('    11            6  job 11')
    expect(rows.at(-1)).to.equal('     2            1  job 2')
  })

  it('when a job was killed before it reported its processor time, its row shows a question mark', () => {
    expect(slowestJobs([{ name: 'killed', wallS: 3, processorS: null }]).at(-1)).to.equal(
      '     3            ?  killed',
    )
  })
})
