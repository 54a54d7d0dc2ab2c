// The full build: the small one, the device, and what gives automation away.
import { client, VERSION } from './client'
import { device } from './device'
import type { Options, Vettance } from './types'

export type * from './types'
export { VERSION }

/** Make the object that measures this page and speaks to the risk service. Nothing happens before `start`. */
export const createVettance = (options: Options): Vettance => client(options, 'full', device)
