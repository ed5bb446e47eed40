package reason
