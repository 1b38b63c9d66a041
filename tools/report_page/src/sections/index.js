// The page's charts, in its order. A chart is a row:
//   id, title    of its section
//   scope        'step', 'weeks': of the run that is chosen; 'database': of everything
//   needs        the table it reads, and `how`: the command that fills it
//   controls     (store, state) -> [{id, label, options: [[value, text]], value}]: what a reader may choose
//   build        (store, run id, colours, state) -> null without data, else
//                {summary, height, option, table: {columns: [{name, unit}], rows}, key: [[text, colour]]}
import {accuracy} from './accuracy.js';
import {failures} from './failures.js';
import {links} from './links.js';
import {stepLoss, weeksLoss} from './losses.js';
import {memory} from './memory.js';
import {scaling} from './scaling.js';
import {schedule} from './schedule.js';
import {stepTime} from './step_time.js';
import {sweeps} from './sweeps.js';
import {tornado} from './tornado.js';

export const sections = [stepTime, stepLoss, schedule, memory, links, weeksLoss, failures, scaling, sweeps, tornado, accuracy];
