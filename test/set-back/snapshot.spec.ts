import { describeSetBack } from './suite';

describeSetBack('snapshot');
