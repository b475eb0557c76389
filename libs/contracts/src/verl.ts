/** What verl's load balancer raises when no server can be given; adapters for it answer NO_SERVER_AVAILABLE with this text. */
export const VERL_NO_SERVER_MESSAGE = 'No available servers in load balancer';
