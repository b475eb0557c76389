import { describeSetBack } from './suite';

describeSetBack('torn');
